"""Verdicts that are wrong on purpose: how often, for whom, and always the same."""

import json

import pytest

from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rows import Domain, Message, Role
from data_schemas.study import InjectedNoise
from tasks.gym.table import score_batch
from tasks.lab.study.injected_noise import with_noise


def graded(verifier: str, gold: dict[str, object]) -> GradedProblem:
    return GradedProblem(
        id=f"test/{verifier}",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="How much is 3 + 4?"),),
        verifier=verifier,
        answer=json.dumps(gold),
        source="test",
        source_row="0",
        pass_rate=0.5,
        mean_tokens=3.0,
        band=Band.MEDIUM,
    )


def accepted(answer: str, noise: InjectedNoise, count: int = 2000) -> float:
    (problem,) = with_noise([graded("final_answer", {"value": "7"})], noise)
    texts = [f"<think>{place}</think>{answer}" for place in range(count)]
    verdicts = score_batch([problem] * count, texts)
    assert verdicts == score_batch([problem] * count, texts)
    return sum(verdict.solved for verdict in verdicts) / count


@pytest.mark.slow
def test_right_and_wrong_responses_get_wrong_verdicts_at_the_rates_of_the_study():
    noise = InjectedNoise(false_positive=0.1, false_negative=0.2)

    assert 0.8 == pytest.approx(accepted("7", noise), abs=0.03)
    assert 0.1 == pytest.approx(accepted("8", noise), abs=0.03)


def test_without_rates_the_verdicts_are_those_of_the_verifier():
    assert (1.0, 0.0) == (accepted("7", InjectedNoise(), 50), accepted("8", InjectedNoise(), 50))


def test_other_verifiers_and_gold_answers_that_cannot_be_read_stay():
    noise = InjectedNoise(false_positive=0.5)
    choice = graded("choice", {"correct": ["A"], "others": [["B"]]})

    assert [choice] == with_noise([choice], noise)
    (broken,) = with_noise([graded("final_answer", {"valeu": "7"})], noise)
    assert score_batch([broken], ["7"])[0].abstained
