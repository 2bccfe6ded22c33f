"""Steps of a small task under every policy, by hand."""

from dataclasses import replace
from itertools import cycle, islice

import numpy as np
import pytest

from tasks.lab.simulator.lengths import LengthGroup
from tasks.lab.simulator.rates import EngineRates, TaskRates
from tasks.lab.simulator.steps import Policy, SimulatedBatch, Simulation, SimulationResult

ENGINE = EngineRates(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, slots=1, cache_tokens=1000)


RATES = TaskRates(ENGINE, engines=2, score_s=0.25, update_s=0.75, sync_s=0.5, reward_s=1.0)
"""Two engines of one slot; a step trains 1 s a token, and a weight sync takes 0.5 s."""


def simulate(
    lengths: list[list[int]], policy: Policy, *, dedicated: bool = False, rates: TaskRates = RATES
) -> SimulationResult:
    batch = SimulatedBatch(len(lengths), len(lengths[0]), prompt_tokens=0, max_tokens=8)

    def draw(prompts: int, size: int, random: np.random.Generator) -> list[LengthGroup]:
        del size, random
        drawn = islice(cycle(lengths), prompts)
        return [LengthGroup(np.array(own, dtype=float), float(np.mean(own))) for own in drawn]

    return Simulation(rates, batch, draw, dedicated=dedicated).run(policy, 2)


def test_a_step_is_the_sum_of_its_parts():
    found = simulate([[3], [1], [3], [1]], Policy(longest_first=True))

    # Both engines have 3 + 1; responses end at 3, 3, 4 and 4, verdicts at 4, 5, 6 and 7.
    parts = {"rollout": 4.0, "reward": 3.0, "old_logprobs": 2.0, "update": 6.0, "weight_sync": 0.5}
    parts |= {"rank_zero": 0.0, "commit": 0.0}
    assert (parts, 15.5, 8.0) == (found.parts, found.seconds, found.tokens)


@pytest.mark.parametrize(
    ("policy", "dedicated"),
    [
        (Policy(), False),
        (Policy(segment_tokens=4, on_demand=True), False),
        (Policy(staleness=1, free_running=True), False),
        (Policy(), True),
    ],
)
def test_gpus_wait_while_rank_zero_works_on_responses_and_a_state_is_committed(policy, dedicated):
    lengths = [[3], [1], [3], [1]]
    rates = replace(RATES, rank_zero_s=0.5, commit_s=4.0)
    plain, found = (simulate(lengths, policy, dedicated=dedicated, rates=r) for r in (RATES, rates))

    # Four responses of 0.5 s each.
    assert plain.parts | {"rank_zero": 2.0, "commit": 4.0} == found.parts
    assert pytest.approx(plain.seconds + 6.0) == found.seconds
    worked = (1.0 - plain.trainer_idle) * plain.seconds
    assert pytest.approx(1.0 - worked / found.seconds) == found.trainer_idle


def test_dedicated_engines_go_on_while_rank_zero_works_but_stand_still_for_a_commit():
    rates = replace(RATES, rank_zero_s=0.5, commit_s=4.0)
    found = simulate([[2], [2]], Policy(staleness=1), dedicated=True, rates=rates)

    # Rollouts and rewards take 4 s, beside 4 s of the trainer and 1 s of rank 0.
    assert (0.0, 0.0, 1.0) == tuple(found.parts[one] for one in ("rollout", "reward", "rank_zero"))
    assert 4.0 + 1.0 + 0.5 + 4.0 == found.seconds


def test_as_drawn_one_engine_has_all_long_responses():
    found = simulate([[3], [1], [3], [1]], Policy(longest_first=False))

    assert (6.0, 1.0) == (found.parts["rollout"], found.parts["reward"])
    assert pytest.approx(1.0 - (4.0 + 8.0 + 0.5) / 15.5) == found.rollout_idle


def test_rewards_after_rollouts_take_their_whole_time():
    found = simulate([[3], [1], [3], [1]], Policy(overlapped_rewards=False))

    assert 4.0 == found.parts["reward"]


def test_segments_train_the_same_tokens_of_older_policies():
    whole = simulate([[8], [2]], Policy())
    cut = simulate([[8], [2]], Policy(segment_tokens=4, on_demand=True))

    assert (10.0, 10.0) == (whole.tokens, cut.tokens)
    assert cut.parts["rollout"] < whole.parts["rollout"]
    assert (0.0, 0.5) == (whole.staleness, cut.staleness)  # one of two groups spans two steps
    assert (0, 1) == (whole.oldest, cut.oldest)


def test_a_response_is_scored_when_it_is_whole():
    found = simulate([[8], [2]], Policy(segment_tokens=4, on_demand=True))

    # Of the three responses of a step, the two that are whole end at 4 and 6, in one order or the
    # other; the third is cut at 4 and has no verdict yet.
    assert (6.0, 1.0) == (found.parts["rollout"], found.parts["reward"])


@pytest.mark.parametrize("bound", [1, 2, 4])
def test_no_response_of_the_free_running_policy_is_older_than_its_bound(bound):
    lengths = [[8], [1], [1], [1], [1], [1], [1], [1]]
    found = simulate(lengths, Policy(staleness=bound, free_running=True))

    assert 0 < found.oldest <= bound
    assert found.staleness <= found.oldest


def test_dedicated_engines_hide_the_shorter_of_rollouts_and_training():
    found = simulate([[2], [2]], Policy(staleness=1), dedicated=True)

    # Rollouts and rewards take 4 s, as the trainer does.
    assert (4.5, 1.0, 0.0) == (found.seconds, found.staleness, found.parts["rollout"])


def test_free_running_engines_do_not_wait_for_the_longest_response():
    lengths = [[8], [1], [1], [1]]
    policies = (Policy(staleness=1), Policy(staleness=1, free_running=True))
    lock_step, free = (simulate(lengths, policy, dedicated=True) for policy in policies)

    assert free.seconds <= lock_step.seconds
    assert free.tokens <= 2 * sum(map(sum, lengths))
    assert 0.0 < free.staleness
