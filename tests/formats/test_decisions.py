"""Decisions of people are complete or refused with their line."""

import pytest

from data_schemas.gold_decisions import Annotation, GoldDecision
from tasks.errors import DataError
from tasks.formats.decisions import read_decisions, write_annotations

SHOWN = Annotation(
    problem="shop/1",
    source="shop",
    source_row="a" * 64,
    reason="no model solved it",
    question="2 + 2?",
    gold='{"value":"5"}',
    answers={"small": {"4": 2}},
)
SIGNED = {"by": "Ana", "at": "2026-01-02T03:04:05Z"}


def written(path, *changes):
    """Write a file in which people changed these fields of the line that they were shown."""
    write_annotations(path, [SHOWN])
    line = SHOWN.model_dump(mode="json")
    lines = [
        Annotation.model_construct(**line | change).model_dump_json(warnings=False)
        for change in changes
    ]
    path.write_text("\n".join(lines))
    return path


def test_what_is_undecided_is_skipped_and_the_rest_is_read_back(tmp_path):
    corrected = {"decision": "correct", "correction": '{"value":"4"}', **SIGNED}
    one = written(tmp_path / "one", {}, corrected)
    two = written(tmp_path / "two", {"problem": "shop/2", "decision": "keep", **SIGNED})

    found = read_decisions([one, two])

    assert [GoldDecision.CORRECT, GoldDecision.KEEP] == [one.decision for one in found.values()]
    assert "Ana at 2026-01-02T03:04:05+00:00" == found["shop/1"].who


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decision": "keep", "by": "Ana"}, "needs `by` and `at`"),
        ({"decision": "drop", "at": SIGNED["at"]}, "needs `by` and `at`"),
        ({"decision": "drop", "by": " ", "at": SIGNED["at"]}, "needs `by` and `at`"),
        ({"decision": "correct", **SIGNED}, "`correction` is needed for correct"),
        ({"decision": "keep", "correction": "4", **SIGNED}, "and for nothing else"),
        ({"decision": "correct", "correction": SHOWN.gold, **SIGNED}, "decide keep"),
        ({"decision": "maybe", **SIGNED}, "decision: Input should be"),
        ({"decision": "keep", "by": "Ana", "at": "2026-01-02T03:04:05"}, "at: .*timezone"),
        ({"decision": "keep", "by": "Ana", "at": "20260102"}, "at: .*20260102 is no date"),
        ({"decision": "keep", "by": "Ana", "at": 20260102}, "at: .*20260102 is no date"),
    ],
)
def test_an_incomplete_decision_is_refused_with_its_line(tmp_path, change, message):
    path = written(tmp_path / "file", {"problem": "shop/0"}, change)

    with pytest.raises(DataError, match=f"line 2: .*{message}"):
        read_decisions([path])


def test_a_line_that_is_no_annotation_and_a_second_decision_are_refused(tmp_path):
    (tmp_path / "broken").write_text('{"problem": "shop/1"}')
    keep = {"decision": "keep", **SIGNED}
    twice = written(tmp_path / "twice", keep, keep)

    with pytest.raises(DataError, match="line 1: source: Field required"):
        read_decisions([tmp_path / "broken"])
    with pytest.raises(DataError, match="line 2: shop/1 is decided twice"):
        read_decisions([twice])
