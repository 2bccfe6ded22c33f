"""Engines that decode: seconds by hand, and what no policy may change."""

import pytest

from tasks.errors import SettingsError
from tasks.lab.simulator.fleet import CompletedJob, Fleet, GenerationJob
from tasks.lab.simulator.rates import EngineRates


def rates(**changes) -> EngineRates:
    given = {
        "pass_s": 1.0,
        "experts_s": 0.0,
        "expert_share": 0.0,
        "sequence_s": 0.0,
        "context_s": 0.0,
        "prefill_s": 0.0,
        "slots": 2,
        "cache_tokens": 1000,
    }
    return EngineRates(**(given | changes))


def job(group: int, tokens: int, prompt: int = 1, **more) -> GenerationJob:
    return GenerationJob(group, 0, prompt, tokens, **more)


def ends(fleet: Fleet) -> dict[int, float]:
    return {one.job.group: one.second for one in fleet.drain()}


def test_sequences_advance_together_and_a_free_slot_is_filled():
    fleet = Fleet(rates(), [[job(0, 2), job(1, 5), job(2, 1)]])

    assert {0: 2.0, 2: 3.0, 1: 5.0} == ends(fleet)


def test_a_pass_costs_its_sequences_its_cache_and_what_was_prefilled():
    costs = rates(sequence_s=0.5, context_s=0.1, prefill_s=0.25)
    fleet = Fleet(costs, [[job(0, 2, prompt=4)]])

    # Prefill of 4; two passes of 1.5; the cache has 5 tokens in the first, 6 in the second.
    assert pytest.approx(4 * 0.25 + 2 * 1.5 + 0.1 * (5 + 6)) == ends(fleet)[0]


def test_only_the_experts_that_are_chosen_are_read():
    costs = rates(experts_s=8.0, expert_share=0.25)

    assert (1 + 2.0, 1 + 8 * (1 - 0.75**2)) == (costs.pass_seconds(1), costs.pass_seconds(2))


def test_the_last_sequence_is_preempted_when_the_cache_is_full_and_still_ends():
    fleet = Fleet(rates(cache_tokens=10), [[job(0, 7, prompt=2), job(1, 7, prompt=2)]])
    ended = fleet.drain()

    # Both grow to 5 tokens in 3 passes; the second waits until the first ends after 7.
    assert [(0, 7.0), (1, 7.0 + 4.0)] == [(one.job.group, one.second) for one in ended]
    assert 1 == fleet.engines[0].preempted


def test_every_token_is_generated_once_whatever_is_preempted():
    jobs = [job(group, 3 + group % 5, prompt=2) for group in range(40)]
    fleet = Fleet(rates(slots=8, cache_tokens=24), [jobs[:30], jobs[30:]])
    ended = fleet.drain()

    assert {one.group: one.tokens for one in jobs} == {
        one.job.group: one.job.tokens + one.job.earlier for one in ended
    }
    assert sum(engine.preempted for engine in fleet.engines) > 0


def test_a_sequence_that_never_fits_is_refused_at_once():
    with pytest.raises(SettingsError, match="does not fit in the cache of an engine, 10 tokens"):
        Fleet(rates(cache_tokens=10), [[job(0, 8, prompt=4)]])


def test_engines_take_from_a_shared_queue_as_they_run_dry():
    fleet = Fleet(rates(slots=1), [(), ()])
    fleet.shared.extend([job(0, 5), job(1, 2), job(2, 2), job(3, 1)])
    fleet.wake(0.0)

    assert {0: 5.0, 1: 2.0, 2: 4.0, 3: 5.0} == ends(fleet)


def test_in_rounds_an_engine_that_has_room_waits_until_all_have_computed_the_passes_of_its_round():
    fleet = Fleet(rates(slots=2, context_s=1.0), [(), ()])
    fleet.shared.extend([job(0, 4), job(1, 4), job(2, 4, prompt=3), job(3, 1), job(4, 2)])

    ended = {one.job.group: one.second for one in fleet.drain_in_rounds(2)}
    # They take 0, 2 and 1, 3. A pass is 1 s and reads the cache: 1 + 6, 1 + 8 s for the first
    # engine, 1 + 4, 1 + 3 for the second. So its free slot waits for group 4 from 9 s until 16.
    assert {3: 5.0, 0: 40.0, 2: 40.0, 1: 32.0, 4: 32.0} == ended


def test_in_rounds_every_token_is_generated_once_too():
    jobs = [job(group, 3 + group % 5, prompt=2, expected=2.0) for group in range(40)]
    fleet = Fleet(rates(slots=8, cache_tokens=24), [(), ()])
    fleet.shared.extend(jobs)
    ended = fleet.drain_in_rounds(3)

    assert {one.group: one.tokens for one in jobs} == {
        one.job.group: one.job.tokens + one.job.earlier for one in ended
    }
    assert sum(engine.preempted for engine in fleet.engines) > 0


def test_no_more_is_taken_than_is_expected_to_stay_in_the_cache():
    fleet = Fleet(rates(slots=9, cache_tokens=20), [()])
    fleet.shared.extend(job(group, 6, prompt=2, expected=6.0) for group in range(6))
    fleet.wake(0.0)

    assert 4 == fleet.engines[0].live  # 2 + 6 / 2 tokens each
    assert 0 == sum(one.job.earlier for one in fleet.drain()[:1])


def test_a_pause_delays_what_is_live():
    fleet = Fleet(rates(), [[job(0, 3)]])
    fleet.pause(10.0)

    assert [CompletedJob(13.0, job(0, 3))] == fleet.drain()
