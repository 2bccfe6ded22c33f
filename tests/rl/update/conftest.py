"""A step by hand: groups whose verdicts, lengths and outcomes are given."""

import pytest

from data_schemas.ledgers import GroupOutcome
from data_schemas.rollouts import RolloutGroup, ScoredRollout
from data_schemas.verdicts import abstain, scored
from tasks.rl.groups import CollectedGroup


@pytest.fixture
def entry(problems, make_rollout):
    """Make a group of one response per score; None is an abstention."""

    def make(
        scores,
        outcome=GroupOutcome.NON_ZERO_VARIANCE,
        *,
        number=0,
        lengths=None,
        penalty=0.0,
        draw=0,
        rollout=None,
        **changes,
    ):
        items = tuple(
            ScoredRollout(
                make_rollout(sample, length, problem_id=problems[number].id, **(rollout or {})),
                "",
                abstain("timeout") if score is None else scored(score, "rule"),
                penalty,
            )
            for sample, (score, length) in enumerate(
                zip(scores, lengths or [4] * len(scores), strict=True)
            )
        )
        return CollectedGroup(RolloutGroup(problems[number], items), draw, outcome, **changes)

    return make
