"""Records of a phase and of an held-out evaluation, written down by hand."""

import pytest

from data_schemas.ledger import GroupOutcome, LedgerRow
from data_schemas.prompts import Domain
from data_schemas.reports import StepReport, StepTiming
from data_schemas.samples import SampleResult
from tasks.ablation.measures import accuracy_by_problem, cell_of

METRICS = {
    "policy/grad_norm": 1.0,
    "reward/mean": 0.5,
    "zero_variance/share": 0.4,
    "zero_variance/trained_share": 0.2,
    "rollout/staleness_versions": 0.0,
    "policy/clip_share": 0.1,
    "policy/trained_tokens": 40.0,
    "mismatch/mean_abs_logprob": 0.0,
}


def ledger_row(step, problem, **changes):
    values = {
        "step": step,
        "round": 0,
        "problem_id": problem,
        "domain": Domain.MATHS,
        "outcome": GroupOutcome.NON_ZERO_VARIANCE,
        "rollouts": 2,
        "prompt_tokens": 3,
        "generated_tokens": 20,
        "draft_tokens": 0,
        "saved_tokens": 0,
        "trained_tokens": 20,
        "solved": 1,
        "abstained": 0,
        "mean_score": 0.5,
        "advantage_mass": 1.0,
        "pass_rate_change": 0.0,
    }
    return LedgerRow(**(values | changes))


def sample(problem, place, score):
    return SampleResult(
        problem_id=problem,
        domain=Domain.MATHS,
        language="en",
        source="hand",
        sample=place,
        text="",
        score=score,
        reason="scored",
        tokens=5,
        truncated=False,
        surprisal_nats=1.0,
    )


def accuracy_of(solved):
    return accuracy_by_problem(
        [
            sample(f"p{problem}", place, None if score is None else float(score))
            for problem, scores in enumerate(solved)
            for place, score in enumerate(scores)
        ]
    )


@pytest.fixture
def make_row():
    return ledger_row


@pytest.fixture
def make_sample():
    return sample


@pytest.fixture
def metrics():
    return METRICS


@pytest.fixture
def make_cell():
    """A cell from the measures of its steps and the solved problems of its held-out evaluation."""

    def make(variant, seed, *, steps=({},), solved=((1, 0), (0, 0)), rows=(), costs=()):
        return cell_of(
            variant,
            seed,
            steps=[
                StepReport(step=place, policy_version=place, metrics=METRICS | changes)
                for place, changes in enumerate(steps, start=1)
            ],
            timings=[
                StepTiming(step=place, seconds={"collect": 2.0, "update": 1.0, "reward": 0.25})
                for place, _ in enumerate(steps, start=1)
            ],
            rows=rows or [ledger_row(1, "a")],
            costs=costs,
            accuracy=accuracy_of(solved),
        )

    return make
