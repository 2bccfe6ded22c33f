import pytest

from data_schemas.rows import Parent
from tasks.errors import SettingsError
from tasks.training.merge.copies import Copies

SHAPES = {"a.gate.weight": (8, 4), "a.down_proj": (8, 4, 2), "a.norm": (4,), "scalar": ()}
REASONING, COMMERCE = Parent.REASONING, Parent.COMMERCE


def test_the_first_pattern_of_a_whole_tensor_decides():
    copies = Copies.parse({"*.gate.*": COMMERCE, "*": REASONING}, SHAPES)

    assert [1, 0, 0, 0] == [copies.whole(name) for name in SHAPES]
    assert [] == copies.rows("a.gate.weight")


def test_rows_are_copied_and_the_rest_is_merged():
    copies = Copies.parse({"a.down_proj[3,7]": COMMERCE, "a.gate.weight[3]": REASONING}, SHAPES)

    assert [(3, 1), (7, 1)] == copies.rows("a.down_proj")
    assert [(3, 0)] == copies.rows("a.gate.weight")
    assert {None} == {copies.whole(name) for name in SHAPES}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("*.router.*", r"'\*\.router\.\*', which matches no tensor"),
        ("a.gate.weight[8]", r"a\.gate\.weight has shape \[8, 4\]: rows are counted from 0"),
        ("scalar[0]", r"scalar has shape \[\]"),
        ("a.norm[x]", "which matches no tensor"),
    ],
)
def test_what_matches_nothing_is_refused(pattern, said):
    with pytest.raises(SettingsError, match=said):
        Copies.parse({pattern: REASONING}, SHAPES)
