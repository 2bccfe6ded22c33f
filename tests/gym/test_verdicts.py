"""The three cases of a verdict."""

import pytest
from pydantic import ValidationError

from data_schemas.verdicts import Verdict, abstain, response_fault, scored


def test_a_response_at_fault_scores_zero_and_its_reason_says_so() -> None:
    verdict = response_fault("timeout", "2^{2^{99}}")

    assert (0.0, "response_fault:timeout", "2^{2^{99}}") == (
        verdict.score,
        verdict.reason,
        verdict.detail,
    )
    assert verdict.by_response_fault
    assert not verdict.abstained
    assert not verdict.solved


def test_an_abstention_that_is_not_the_response_s_fault_has_no_score() -> None:
    assert abstain("bad_gold").abstained
    assert not abstain("bad_gold").by_response_fault


def test_a_scored_response_is_at_no_fault() -> None:
    assert not scored(0.0, "wrong").by_response_fault


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_score_outside_of_0_to_1_is_refused(score: float) -> None:
    with pytest.raises(ValidationError):
        Verdict(score=score, reason="odd")
