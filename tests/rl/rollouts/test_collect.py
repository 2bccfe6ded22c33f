import dataclasses
from collections import Counter

import numpy as np
import pytest

from data_schemas.ledgers import GroupOutcome
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rl_settings import (
    NO_SKIPS,
    EngineSettings,
    RewardSettings,
    SkipSettings,
    ZeroVarianceSettings,
)
from data_schemas.rollouts import KeptSets, RouterTrace, StopReason
from data_schemas.rows import Domain
from data_schemas.verdicts import abstain, scored
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.errors import EngineError, SettingsError
from tasks.models.model_folder import SHIPPED
from tasks.rl.collector import Collector
from tasks.rl.groups import CollectedGroup
from tasks.rl.ledger import collect_metrics
from tasks.rl.prompts import MAX_SKIPS
from tasks.rl.turns import check_turns
from tests.slices import sliced

FREE = EngineSettings(staleness=2, segment_tokens="free")
CALM = ZeroVarianceSettings(refill_rounds=0)


@pytest.fixture
def collector(settings, problems, tiny_moe, scorer):
    def build(rule=None, rows=problems, start=None, engine=HFRolloutEngine, **changes):
        return Collector(
            settings.model_copy(update=changes),
            engine(tiny_moe),
            load_tokenizer(tiny_moe),
            scorer(rule) if rule else scorer(),
            rows,
            start,
        )

    return build


def graded(rows, rates):
    return [
        GradedProblem(**row.model_dump(), pass_rate=rate, mean_tokens=5.0, band=Band.MEDIUM)
        for row, rate in zip(rows, rates, strict=True)
    ]


def key_of(entry):
    return entry.group.rollouts[0].rollout.problem_id


def rollouts_of(collected):
    return [item.rollout for entry in collected.groups for item in entry.group.rollouts]


def test_zero_variance_groups_are_refilled_and_counted_as_surplus(collector):
    calls = []

    def first_draw_flat(problem, _):
        calls.append(problem.id)
        return scored(float(len(calls) > 12 and len(calls) % 2), "rule")

    found = collector(first_draw_flat, zero_variance=ZeroVarianceSettings(refill_rounds=1)).collect(
        1
    )

    assert 24 == len(calls)
    assert [GroupOutcome.SURPLUS] * 3 + [GroupOutcome.NON_ZERO_VARIANCE] * 3 == [
        item.outcome for item in found.groups
    ]
    assert 3 == len(found.trained)


@pytest.mark.parametrize(("share", "refilled"), [(0.0, 9), (0.5, 1), (1.4, 4), (0.3, 0)])
def test_refills_end_when_their_share_of_the_tokens_is_spent(collector, share, refilled):
    """Three groups of equal length are flat, and so is every one in three refills."""
    bound = ZeroVarianceSettings(refill_rounds=3, refill_share=share)

    found = collector(lambda *_: scored(0.0, "rule"), zero_variance=bound).collect(1)

    assert 3 + refilled == len(found.groups)
    assert 3 == len(found.trained)


def test_turns_of_several_agents_are_not_free_running(settings):
    with pytest.raises(SettingsError, match="are not free-running"):
        check_turns(settings.model_copy(update={"engines": FREE}))


def test_a_judge_sees_the_whole_group_at_once(collector, problems):
    rows = [problem.model_copy(update={"verifier": "generative_judge"}) for problem in problems]
    found = collector(rows=rows, zero_variance=ZeroVarianceSettings(refill_rounds=0)).collect(1)

    assert [4] * 3 == [len(entry.group.rollouts) for entry in found.groups]


def test_too_many_abstentions_stop_the_step_with_their_reasons(collector):
    calls = []

    def half(*_):
        calls.append(1)
        return abstain("timeout") if len(calls) % 2 else scored(1.0, "rule")

    with pytest.raises(EngineError, match=r"6 of 12 rollouts have no verdict \(timeout x6\)"):
        collector(half).collect(1)


def test_routes_that_cannot_be_replayed_stop_the_step(collector):
    class AllZero(HFRolloutEngine):
        def generate(self, requests, sampling):
            for one in super().generate(requests, sampling):
                empty = RouterTrace(np.zeros_like(one.trace.experts_TLK))
                yield dataclasses.replace(one, trace=empty)

    with pytest.raises(EngineError, match="impossible routes: trace repeats an expert"):
        collector(engine=AllZero).collect(1)


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        (None, "recorded no sets"),
        (KeptSets(np.zeros(0, np.int32), np.zeros(0, np.int32)), "recorded impossible sets"),
    ],
)
def test_sets_that_cannot_be_renormalised_over_stop_the_step(collector, kept, reason):
    class WithoutSets(HFRolloutEngine):
        def generate(self, requests, sampling):
            for one in super().generate(requests, sampling):
                yield dataclasses.replace(one, kept=kept)

    with pytest.raises(EngineError, match=reason):
        collector(engine=WithoutSets, top_p=0.9).collect(1)


def test_a_collector_goes_on_from_its_state(collector):
    whole = collector()
    first, second = whole.collect(1), whole.collect(2)
    half = collector()
    half.collect(1)
    again = collector(start=half.state()).collect(2)

    assert [g.group.problem.id for g in second.groups] == [g.group.problem.id for g in again.groups]
    for before, after in zip(rollouts_of(second), rollouts_of(again), strict=True):
        assert before.response_tokens.tolist() == after.response_tokens.tolist()
    assert rollouts_of(first) != rollouts_of(second)


def test_a_prompt_of_certain_zero_variance_is_not_rolled_out(collector, problems):
    rates = [1.0] * 6 + [0.5] * 6
    picky = ZeroVarianceSettings(skip=SkipSettings.model_validate({"above": 0.6}), refill_rounds=0)
    hard = [problem.model_copy(update={"level": 1}) for problem in problems[6:]]
    rows = graded([*problems[:6], *hard], rates)

    found = collector(rows=rows, zero_variance=picky).collect(1)

    easy = {problem.id for problem in problems[:6]}
    assert {GroupOutcome.SKIPPED_ZERO_VARIANCE} == {entry.outcome for entry in found.skipped}
    assert {entry.problem.id for entry in found.skipped} <= easy
    assert not {entry.group.problem.id for entry in found.groups} & easy
    # Four responses of five tokens each were not made.
    assert {20} == {entry.saved_tokens for entry in found.skipped}


def test_a_skipped_prompt_gets_another_chance(collector, problems):
    """All are predicted to have zero variance: none is dropped for good, and a draw always ends."""
    picky = ZeroVarianceSettings(skip=SkipSettings.model_validate({"above": 0.6}), refill_rounds=0)
    rows = graded(problems, [1.0] * 12)
    found = collector(rows=rows, zero_variance=picky).collect(1)

    assert 3 == len(found.groups)
    assert 12 == len(found.skipped)


def test_a_prompt_is_rolled_out_after_its_last_skip(collector, problems):
    picky = ZeroVarianceSettings(skip=SkipSettings.model_validate({"above": 0.6}), refill_rounds=0)
    hard = [problem.model_copy(update={"level": 1}) for problem in problems[6:]]
    rows = graded([*problems[:6], *hard], [1.0] * 6 + [0.5] * 6)
    mine = collector(rows=rows, zero_variance=picky)
    for problem in problems[:6]:
        for _ in range(MAX_SKIPS):
            mine._history.skipped(problem.id)

    found = mine.collect(1)

    easy = {problem.id for problem in problems[:6]}
    assert not found.skipped
    assert {entry.group.problem.id for entry in found.groups} & easy
    assert {mine.state().records[entry.group.problem.id].skips for entry in found.groups} == {0}


def test_the_engine_is_told_how_long_the_responses_of_a_prompt_were(collector, problems):
    seen = []

    class Recording(HFRolloutEngine):
        def generate(self, requests, sampling):
            seen.extend(request.expected_tokens for request in requests)
            yield from super().generate(requests, sampling)

    collector(rows=graded(problems, [0.5] * 12), engine=Recording).collect(1)

    assert {5.0} == set(seen)


def test_group_dro_draws_the_harder_domain_more_often_and_goes_on_from_its_state(
    collector, problems
):
    code = [
        one.model_copy(update={"domain": Domain.CODE, "id": f"code/{n}"})
        for n, one in enumerate(problems)
    ]
    rows = graded([*problems, *code], [0.9] * 12 + [0.1] * 12)
    robust = {
        "domains": {Domain.MATHS: 1.0, Domain.CODE: 1.0},
        "group_dro": 2.0,
        "prompts_per_step": 12,
        "group_size": 2,
        "zero_variance": ZeroVarianceSettings(skip=NO_SKIPS),
    }
    whole = collector(rows=rows, **robust)
    first, second = whole.collect(1), whole.collect(2)

    drawn = Counter(entry.group.problem.domain for entry in (*first.groups, *second.groups))
    assert drawn[Domain.CODE] > 1.5 * drawn[Domain.MATHS]
    skipped = {(entry.outcome, entry.problem.domain) for entry in first.skipped}
    assert {(GroupOutcome.SKIPPED_DOMAIN, Domain.MATHS)} == skipped
    half = collector(rows=rows, **robust)
    half.collect(1)
    again = collector(rows=rows, start=half.state(), **robust).collect(2)
    assert [key_of(entry) for entry in second.groups] == [key_of(entry) for entry in again.groups]


def test_the_curriculum_keeps_to_its_band(collector, problems):
    rates = [0.1] * 6 + [0.5] * 6
    staged = ZeroVarianceSettings(curriculum=((0.4, 0.9), (0.0, 0.4)), refill_rounds=0)

    found = collector(rows=graded(problems, rates), zero_variance=staged).collect(1)

    assert {entry.group.problem.id for entry in found.groups} <= {p.id for p in problems[6:]}
    assert {GroupOutcome.SKIPPED_BAND} == {entry.outcome for entry in found.skipped}


def test_a_long_response_is_made_in_segments_with_the_same_tokens(collector, settings):
    """Weights do not change here, so a response in three parts is the response in one."""
    cut = EngineSettings(segment_tokens=2)
    calm = ZeroVarianceSettings(refill_rounds=0)
    whole = {
        (entry.group.problem.id, item.rollout.sample): item.rollout
        for entry in collector(zero_variance=calm).collect(1).groups
        for item in entry.group.rollouts
    }
    parts = collector(engines=cut, zero_variance=calm)
    steps = [parts.collect(step) for step in (1, 2, 3)]

    assert all(item.group.key.startswith("1.") for item in steps[0].in_flight)
    done = {
        (entry.group.problem.id, item.rollout.sample): item.rollout
        for collected in steps
        for entry in collected.groups
        if entry.group.rollouts[0].rollout.problem_id.startswith("1.")
        for item in entry.group.rollouts
    }
    assert whole.keys() == done.keys()
    for place, rollout in whole.items():
        assert rollout.response_tokens.tolist() == done[place].response_tokens.tolist()
        assert rollout.logprobs == pytest.approx(done[place].logprobs, abs=1e-4)
        assert rollout.trace.experts_TLK.shape == done[place].trace.experts_TLK.shape
        assert StopReason.SEGMENT is not done[place].stop_reason


@pytest.fixture
def varied(settings, problems, scorer):
    """A collector on the shipped model, whose responses differ in length."""

    def build(slots=512, **changes):
        tokenizer = load_tokenizer(SHIPPED)
        changed = settings.model_copy(
            update={"max_new_tokens": 24, "zero_variance": CALM, "engines": FREE} | changes
        )
        engine = HFRolloutEngine(SHIPPED, slots=slots)
        rule = dataclasses.replace(scorer(), tokenizer=tokenizer)
        return Collector(changed, engine, tokenizer, rule, problems)

    return build


@pytest.mark.slow
@pytest.mark.parametrize("slots", [512, 6])
def test_free_running_steps_train_what_is_complete_and_keep_within_the_bound(varied, slots):
    mine, steps, ages = varied(slots), [], set()
    for step in range(1, 6):
        mine._engine._version = step - 1
        steps.append(mine.collect(step))
        found = rollouts_of(steps[-1])
        begun = [rollout.first_version for rollout in found]
        ages |= {step - 1 - version for version in begun}

    assert 0 < max(ages) <= 2
    assert any(collected.in_flight for collected in steps)
    for collected in steps:
        assert 3 <= len(collected.groups) <= 6 - len(collected.in_flight)
        # What stays in flight is trained in a later step, and not beyond its bound.
        assert all(item.group.step > collected.step - 2 for item in collected.in_flight)
        assert collected.metrics["rollout/engine_tokens"] == sum(
            entry.new_tokens + entry.draft_tokens
            for entry in [*collected.groups, *collected.in_flight]
        )
    keys = [entry.group.rollouts[0].rollout.problem_id for one in steps for entry in one.groups]
    assert len(set(keys)) == len(keys)


def test_a_response_in_flight_has_the_tokens_of_one_that_was_never_cut(varied):
    """Weights do not change here."""
    whole = {
        (item.problem_id, item.sample): item
        for item in rollouts_of(varied(engines=EngineSettings(), prompts_per_step=6).collect(1))
    }
    mine, cut = varied(), 0
    for collected in [mine.collect(step) for step in (1, 2, 3)]:
        for item in rollouts_of(collected):
            if not item.problem_id.startswith("1."):
                continue
            expected = whole.pop((item.problem_id, item.sample))
            cut += collected.step > 1
            assert expected.response_tokens.tolist() == item.response_tokens.tolist()
            assert expected.logprobs == pytest.approx(item.logprobs, abs=1e-4)
            assert expected.trace.experts_TLK.shape == item.trace.experts_TLK.shape

    assert (True, 0) == (cut > 0, len(whole))


@pytest.mark.parametrize(
    "changes",
    sliced(
        [
            {},
            {"engines": EngineSettings()},
            {"engines": EngineSettings(segment_tokens=5)},
            {"engines": FREE, "zero_variance": ZeroVarianceSettings(refill_rounds=1)},
            {"zero_variance": ZeroVarianceSettings(refill_rounds=2, refill_share=0.5)},
            {"engines": EngineSettings(staleness=2)},
        ],
        lambda changes: (
            changes
            in ({}, {"engines": FREE, "zero_variance": ZeroVarianceSettings(refill_rounds=1)})
        ),
    ),
)
def test_every_rule_lets_a_response_in_whatever_its_length(varied, changes):
    """All samples of every group that began end once, so no length is left behind for good."""
    mine, last = varied(**changes), 7
    steps = [mine.collect(step) for step in range(1, last + 1)]
    ended = [item for one in steps for entry in one.groups for item in entry.group.rollouts]
    begun = {(item.rollout.problem_id, item.rollout.sample) for item in ended}
    in_flight = {item.group.key for item in steps[-1].in_flight}

    assert len(begun) == len(ended)
    assert {item.rollout.num_sampled for item in ended} > {24}  # cut by the limit, and shorter
    for key in {key for key, _ in begun}:
        assert 4 == sum(mine == key for mine, _ in begun)
    # What has not ended began in one of the last steps: nothing waits longer because it is long.
    assert all(int(key.split(".")[0]) > last - 5 for key in in_flight)
    seen = {key.split(".")[0] for key in {k for k, _ in begun} | in_flight}
    assert {str(step) for step in range(1, last + 1)} <= seen


def test_a_second_draw_goes_on_with_what_is_in_flight(varied):
    mine = varied(zero_variance=ZeroVarianceSettings(refill_rounds=1))
    calls = []

    def flat_at_first(problem, _):
        calls.append(problem.id)
        return scored(float(len(calls) > 12 and len(calls) % 2), "rule")

    mine._scorer.rule = flat_at_first
    found = mine.collect(1)

    rows = [*found.groups, *found.in_flight]
    keys = [entry.group.rollouts[0].rollout.problem_id for entry in found.groups]
    keys += [item.group.key for item in found.in_flight]
    assert 3 <= sum(e.outcome is GroupOutcome.NON_ZERO_VARIANCE for e in found.groups)
    assert len(set(keys)) == len(keys)
    assert mine._engine.counters.generated_tokens == sum(
        entry.new_tokens + entry.draft_tokens for entry in rows
    )


def test_what_is_generated_is_what_the_groups_report(collector):
    for changes in ({}, {"engines": EngineSettings(segment_tokens=2)}, {"engines": FREE}):
        mine = collector(**changes)
        steps = [mine.collect(step) for step in (1, 2, 3)]
        counted = sum(
            entry.new_tokens + entry.draft_tokens
            for collected in steps
            for entry in [*collected.groups, *collected.in_flight]
        )

        assert mine._engine.counters.generated_tokens == counted


def test_a_pass_rate_is_compared_with_the_prompts_group_before(collector, problems):
    shares = iter([0.0, 0.5])
    now = [next(shares)]

    def rule(*_):
        rule.calls += 1
        return scored(float(rule.calls % 2 == 0) if now[0] else 0.0, "rule")

    rule.calls = 0
    mine = collector(rule, rows=problems[:3], zero_variance=ZeroVarianceSettings(refill_rounds=0))
    first = mine.collect(1)
    now[0] = next(shares)
    second = mine.collect(2)

    assert {0.0} == {entry.pass_rate_change for entry in first.groups}
    assert {0.5} == {entry.pass_rate_change for entry in second.groups}
    # None before the first group; then the neighbours' and its own zeros.
    first_time, later = mine.state().records, [problem.id for problem in problems[:3]]
    assert all(0.0 < first_time[name].expected_pass_rate < 0.5 for name in later)
    assert all(isinstance(entry, CollectedGroup) for entry in second.groups)


def test_a_monitor_scores_every_response_and_moves_neither_reward_nor_group(collector):
    names = ("tasks.gym.monitors:brevity", "my_monitor.py:polite")
    watched = RewardSettings(monitor=names)

    def rule(problem, response):
        if problem.verifier in names:
            short = problem.verifier == names[0]
            return scored(1.0 if len(response) % 3 else 0.0, "rule") if short else abstain("mute")
        return scored(float(len(response) % 2 == 0), "rule")

    plain = collector(lambda _, text: scored(float(len(text) % 2 == 0), "rule")).collect(1)
    found = collector(rule, rewards=watched).collect(1)

    for before, after in zip(plain.groups, found.groups, strict=True):
        assert before.outcome is after.outcome
        assert [one.verdict for one in before.group.rollouts] == [
            one.verdict for one in after.group.rollouts
        ]
        assert {(), (None,)} >= {one.monitored[1:] for one in after.group.rollouts}
        for one in after.group.rollouts:
            assert (1.0 if len(one.text) % 3 else 0.0) == one.monitored[0]
    metrics = collect_metrics(found, names)
    assert 12.0 == metrics["monitor/abstained/polite"]
    texts = [one.text for entry in found.groups for one in entry.group.rollouts]
    assert metrics["monitor/brevity"] == pytest.approx(sum(len(t) % 3 > 0 for t in texts) / 12)
    assert not [name for name in collect_metrics(plain) if name.startswith("monitor")]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("final_answer",), "reads the answer of its own problems"),
        (("a.py:form", "tasks.gym.monitors:form"), "two monitors are called 'form'"),
    ],
)
def test_a_monitor_that_cannot_be_one_is_refused(names, reason):
    with pytest.raises(ValueError, match=reason):
        RewardSettings(monitor=names)
