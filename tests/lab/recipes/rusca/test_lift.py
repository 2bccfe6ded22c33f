"""The gate before a scaffold, with an engine that answers what it is shown."""

import json

import numpy as np
import pytest

from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import Rollout, StopReason
from data_schemas.rows import Domain, Message, Role
from data_schemas.verdicts import abstain
from tasks.engines.chat import load_tokenizer
from tasks.errors import DataError, SettingsError
from tasks.gym.table import score_batch
from tasks.lab.recipes.rusca.lift import (
    MIN_LIFT,
    SAMPLES,
    Lift,
    check_band,
    in_band,
    measure_lift,
    require_lift,
)
from tasks.lab.recipes.rusca.settings import Form, ScaffoldSettings

SETTINGS = RLSettings(domains={Domain.INSTRUCTION: 1.0})
SHOWN = ScaffoldSettings(form=Form.USER)
RULE = {"instruction_id_list": ["keywords:existence"], "kwargs": [{"keywords": ["soft"]}]}


def problem(number, **changes):
    criterion = {
        "criterion": "Say soft.",
        "points": 1.0,
        "verifier": "instruction_rules",
        "answer": RULE,
    }
    values = {
        "id": f"house/{number}",
        "domain": Domain.INSTRUCTION,
        "language": "en",
        "messages": (Message(role=Role.USER, content=f"Ad {number}."),),
        "verifier": "rule_rubric",
        "answer": json.dumps({"criteria": [criterion], "aggregation": "ruscarl"}),
        "source": "house",
        "source_row": "0" * 64,
        "pass_rate": 0.0,
        "mean_tokens": 4.0,
        "band": Band.UNSOLVED,
    }
    return GradedProblem(**(values | changes))


class Echo:
    """Answers with the prompt itself: it follows whatever it is shown."""

    def __init__(self, *, deaf=False):
        self.deaf = deaf
        self.samples = 0

    def generate(self, requests, sampling):
        for request in requests:
            tokens = request.prompt_tokens[:0] if self.deaf else request.prompt_tokens
            for sample in range(request.num_samples):
                self.samples += 1
                yield Rollout(
                    request.problem_id,
                    sample,
                    request.prompt_tokens,
                    tokens,
                    np.zeros(len(tokens), np.float32),
                    None,
                    StopReason.END,
                    0,
                )


@pytest.fixture
def measure(tiny_moe):
    def run(problems, engine, score=score_batch):
        tokenizer = load_tokenizer(tiny_moe)
        return measure_lift(SETTINGS, SHOWN, problems, engine, tokenizer, score)

    return run


def test_the_lift_is_what_showing_everything_adds_under_the_same_problems(measure):
    engine = Echo()
    found = measure([problem(0), problem(1), problem(2, verifier="shop")], engine)

    assert (0.0, 1.0, 1.0) == (found.bare, found.shown, found.lift.mean)
    assert {"house/0": 0.0, "house/1": 0.0} == found.scores
    assert 2 * 2 * SAMPLES == engine.samples
    require_lift(found)


def test_a_model_that_does_not_follow_the_criteria_is_refused(measure):
    found = measure([problem(0), problem(1)], Echo(deaf=True))

    with pytest.raises(DataError, match=f"a scaffold needs a gain of {MIN_LIFT:g}"):
        require_lift(found)


def test_without_a_rubric_or_a_verdict_the_lift_is_unknown(measure):
    with pytest.raises(DataError, match="no problem has a rubric"):
        measure([problem(0, verifier="shop")], Echo())
    with pytest.raises(DataError, match="no response has a verdict"):
        measure([problem(0)], Echo(), lambda asked, _: [abstain("timeout")] * len(asked))


@pytest.mark.parametrize(("low", "high"), [(0.8, 0.2), (0.5, 0.5), (-0.1, 1.0), (0.0, 1.1)])
def test_a_band_that_is_none_is_refused_before_anything_is_generated(low, high):
    with pytest.raises(SettingsError, match="give quantiles from 0 to 1, the lower one first"):
        check_band(low, high)


def test_a_band_leaves_out_what_scores_outside_of_it():
    problems = [problem(number) for number in range(6)]
    scores = {one.id: number / 4 for number, one in enumerate(problems[:5])}
    found = Lift(bare=0.5, shown=1.0, lift={"mean": 0.5, "low": 0.4, "high": 0.6}, scores=scores)

    kept = in_band(problems, found, 0.25, 0.75)

    # The last one was not measured.
    assert [1, 2, 3, 5] == [int(one.id[-1]) for one in kept]
    assert problems == in_band(problems, found, 0.0, 1.0)
    with pytest.raises(DataError, match=r"between the quantiles 0.6 and 0.7"):
        in_band(problems[:5], found, 0.6, 0.7)
