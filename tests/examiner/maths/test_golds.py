"""What a gold answer is taken for."""

import pytest

from tests.examiner.maths.golds import Shape, understand


@pytest.mark.parametrize(
    ("text", "shape", "parts", "unit"),
    [
        ("$\\frac{3}{4}$", Shape.VALUE, ("\\frac{3}{4}",), ""),
        ("11,\\!880", Shape.VALUE, ("11880",), ""),
        ("10\\text{ cm}", Shape.VALUE, ("10",), "cm"),
        ("50^{\\circ}", Shape.VALUE, ("50",), "degrees"),
        ("\\$4813.24", Shape.VALUE, ("4813.24",), "$"),
        ("80 \\%", Shape.VALUE, ("80",), "%"),
        ("\\left( 4, -\\frac{1}{2} \\right)", Shape.POINT, ("4", "-\\frac{1}{2}"), ""),
        ("[0,2)", Shape.INTERVAL, ("0", "2"), ""),
        ("3i,-3i", Shape.LIST, ("3i", "-3i"), ""),
        ("2215_6", Shape.BASE, ("2215", "6"), ""),
        ("\\text{(C)}", Shape.OPTION, ("C",), ""),
        ("\\begin{pmatrix} 3 \\\\ -1 \\end{pmatrix}", Shape.MATRIX, ("3", "-1"), ""),
    ],
)
def test_a_gold_has_a_shape_parts_and_a_unit(
    text: str, shape: Shape, parts: tuple[str, ...], unit: str
) -> None:
    gold = understand(text)

    assert (shape, parts, unit) == (gold.shape, gold.parts, gold.unit)


@pytest.mark.parametrize(
    "text", ["1,234", "\\tan x", "[2,\\infty)", "(1,1), (3,2)", "-2,-2", "y = 2x", "2715_6"]
)
def test_a_gold_that_may_mean_several_things_has_no_shape(text: str) -> None:
    assert Shape.OTHER is understand(text).shape
