import dataclasses

import pytest

from data_schemas.ledgers import GroupOutcome
from data_schemas.rollouts import RolloutGroup, ScoredRollout, StopReason
from data_schemas.verdicts import abstain, scored
from tasks.errors import DataError
from tasks.rl.collector import CollectorState, Cost, InFlightPrompt, SkippedPrompt, StepRollouts
from tasks.rl.groups import CollectedGroup, KeptPrompt, OpenGroup
from tasks.rl.prompts import CurriculumPosition, PromptRecord
from tasks.rl.state import PendingState, decode, encode


@pytest.fixture
def between(problems, make_rollout):
    cut = make_rollout(0, stop_reason=StopReason.SEGMENT)
    kept = KeptPrompt(0.25, 3.5, is_clipped=True)
    half = OpenGroup("4.0.1", problems[1], 0, 2, (cut, make_rollout(1)), kept=kept)
    items = (
        ScoredRollout(make_rollout(0), "yes", scored(1.0, "correct", "3 = 3"), 0.0),
        ScoredRollout(make_rollout(1), "no", abstain("timeout"), -0.25),
    )
    collected = StepRollouts(
        step=5,
        policy_version=3,
        groups=[
            CollectedGroup(
                RolloutGroup(problems[0], items), 1, GroupOutcome.NON_ZERO_VARIANCE, 9, 2, -0.5
            )
        ],
        skipped=[SkippedPrompt(problems[2], 0, GroupOutcome.SKIPPED_ZERO_VARIANCE, 40, 0.25)],
        in_flight=[InFlightPrompt(half, 4, 0)],
        costs=[Cost(1, problems[0].id, 0.5, 0.25, 3)],
        metrics={"schedule/makespan_tokens": 12.0},
        rollout_seconds=1.5,
        reward_seconds=0.5,
    )
    left = CollectorState(
        17,
        {"p": PromptRecord(solved=1, scored=2, mean_tokens=3)},
        CurriculumPosition(number=1),
        (half,),
    )
    return PendingState(left, (collected,))


def test_what_lies_between_two_steps_comes_back(between, problems):
    data = encode(between)
    back = decode(data, problems)

    assert data == encode(back)
    assert dataclasses.replace(between.collector, open_groups=()) == dataclasses.replace(
        back.collector, open_groups=()
    )
    (before,), (after,) = between.waiting, back.waiting
    assert before.costs == after.costs
    assert before.skipped == after.skipped
    assert before.metrics == after.metrics
    assert before.groups[0].outcome is after.groups[0].outcome
    assert [item.verdict for item in before.groups[0].group.rollouts] == [
        item.verdict for item in after.groups[0].group.rollouts
    ]
    assert not back.collector.open_groups[0].complete
    assert before.in_flight[0].group.kept == back.collector.open_groups[0].kept
    assert 3.5 == back.collector.open_groups[0].kept.weight


def test_a_problem_the_phase_does_not_have_is_named(between, problems):
    with pytest.raises(DataError, match=problems[1].id):
        decode(encode(between), problems[2:])
