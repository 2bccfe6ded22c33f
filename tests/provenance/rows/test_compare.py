"""Two releases: what was added, removed and changed, and nothing else."""

import pytest

from tasks.provenance.rows.differences import compare
from tasks.provenance.rows.index import open_index
from tasks.store.files import sha256_bytes
from tests.provenance.rows.shop import NEW, line_of

FIRST = "release of rl/one of merged"
SECOND = "release of rl/retrain of rl/one of merged"
OTHER = "release of rl/one of base"


def compared(index, original, before: str, after: str):
    return compare(index, *(original.refs[name].statement for name in (before, after)))


def named(differences) -> dict[str, tuple[str, str]]:
    return {f"{one.stage} {one.name}".strip(): (one.before, one.after) for one in differences}


def test_a_release_equals_itself(index, original):
    found, rows = compared(index, original, FIRST, FIRST)

    assert (0, 0, 0, 0) == (len(rows), found.added, found.removed, found.changed)
    parts = (found.data, found.code, found.settings, found.rewards, found.evaluation)
    assert ((), (), (), (), ()) == parts


def test_a_night_adds_its_rows_file_stage_and_judge(index, original):
    found, rows = compared(index, original, FIRST, SECOND)

    new = {sha256_bytes(line_of(row).encode()) for row in NEW}
    assert {"added"} == set(rows["change"].to_pylist())
    assert set(rows["source_row"].to_pylist()) <= new
    assert (found.added, 0, 0) == (len(rows), found.removed, found.changed)
    assert found.rows_before + found.added == found.rows_after
    assert [str(original.outside / "new.jsonl")] == [one.name for one in found.data]
    assert ("", "rlretrainc0de") == named(found.code)["rl/retrain code"]
    assert ("", "ternary") == named(found.rewards)["rl/retrain rewards.judge.model"]
    assert ("0.5000", "0.6000") == named(found.evaluation)["accuracy/all"]
    assert not [one for one in found.settings if "judge" in one.name]


def test_the_other_way_round_removes_what_was_added(index, original):
    forth, _ = compared(index, original, FIRST, SECOND)
    back, rows = compared(index, original, SECOND, FIRST)

    assert (forth.added, 0) == (back.removed, back.added)
    assert {"removed"} == set(rows["change"].to_pylist())
    assert named(forth.settings) == {
        name: (after, before) for name, (before, after) in named(back.settings).items()
    }


def test_a_row_that_both_used_to_another_extent_is_changed(shop):
    shop.reinforce("rl/again", "rl/retrain of rl/one of merged", "new")
    again = "rl/again of rl/retrain of rl/one of merged"
    index = open_index(shop.store, shop.place)

    found, rows = compared(index, shop, "rl/retrain of rl/one of merged", again)

    assert (0, 0) == (found.added, found.removed)
    assert found.changed == len(rows) > 0
    for row in rows.to_pylist():
        assert (row["times after"], row["advantage after"]) == pytest.approx(
            (2 * row["times before"], 2 * row["advantage before"])
        )


def test_suites_with_different_rows_are_said_not_to_be_comparable(index, original):
    same, _ = compared(index, original, SECOND, OTHER)
    other, _ = compared(index, original, FIRST, OTHER)

    assert any("held-out rows" in one.name for one in other.evaluation)
    assert not any("held-out rows" in one.name for one in same.evaluation)
