"""Golds that are falsified are of other values."""

from tasks.gym.maths.verdict import same_answer
from tests.examiner.other_mind import falsified, rate


def test_a_falsified_gold_has_another_value() -> None:
    for gold in ("26", "0", "-3", "1,234", "0.50", "11", r"\frac{7}{12}", r"2\sqrt{3}", "(1, 2)"):
        found = falsified(gold)

        assert found
        assert [] == [false for false in found if same_answer(gold, false)]


def test_a_rate_states_its_interval() -> None:
    assert {"count": 0, "of": 3000, "interval": [0.0, 0.0013]} == rate(0, 3000)
