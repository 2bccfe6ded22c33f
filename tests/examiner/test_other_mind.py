"""Golds that are falsified are of other values."""

import json

from tasks.gym.maths.verdict import same_answer
from tests.examiner.other_mind import EVIDENCE, UNREAD, falsified, rate


def test_a_falsified_gold_has_another_value() -> None:
    for gold in ("26", "0", "-3", "1,234", "0.50", "11", r"\frac{7}{12}", r"2\sqrt{3}", "(1, 2)"):
        found = falsified(gold)

        assert found
        assert [] == [false for false in found if same_answer(gold, false)]


def test_a_rate_states_its_interval() -> None:
    assert {"count": 0, "of": 3000, "interval": [0.0, 0.0013]} == rate(0, 3000)


def test_every_disagreement_with_another_grader_was_read_and_we_are_right_in_each() -> None:
    found = json.loads(EVIDENCE.read_text("utf-8"))

    classes = found["disagreements"]
    assert classes
    assert [] == [one["class"] for one in classes if one["read"] == UNREAD]
    assert [] == [one["class"] for one in classes if "ours" in one["judged falsely by"]]
    assert 0 == sum(row["ours"]["count"] for row in found["rows"])
