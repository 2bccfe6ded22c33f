from dataclasses import replace

import numpy as np
import pytest
import torch

from data_schemas.ledgers import GroupOutcome
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rl_settings import RouterReplay
from data_schemas.rollouts import MISSING_ROUTE, StopReason
from data_schemas.verdicts import response_fault, scored
from tasks.algorithms.kept_sets import end_to_end
from tasks.engines.protocols import TokenScores
from tasks.rl.batch import build
from tasks.rl.collector import InFlightPrompt, SkippedPrompt, StepRollouts
from tasks.rl.groups import OpenGroup
from tasks.rl.ledger import (
    collect_metrics,
    mismatch_of,
    policy_metrics,
    zero_variance_metrics,
)


def part(metrics, *names):
    return {name: metrics[name] for name in names}


def test_rewards_are_means_over_verdicts_and_penalties_over_responses(entry):
    groups = [entry([1.0, 0.5, None], penalty=-0.25), entry([0.0, 0.0, 0.0])]

    assert {
        "reward/mean": 1.5 / 5,
        "reward/mean_maths": 1.5 / 5,
        "reward/solved_share": 1 / 5,
        "reward/abstained_count": 1.0,
        "reward/penalty_mean": -0.75 / 6,
        "reward/reason/rule": 5.0,
        "reward/abstained/timeout": 1.0,
    } == part(
        collect_metrics(StepRollouts(1, 0, groups)),
        *("reward/mean", "reward/mean_maths", "reward/solved_share", "reward/abstained_count"),
        *("reward/penalty_mean", "reward/reason/rule", "reward/abstained/timeout"),
    )


def test_what_is_solved_is_compared_with_grading_where_a_prompt_was_graded(entry):
    def graded(number, scores, rate):
        one = entry(scores, number=number)
        problem = GradedProblem(
            **dict(one.group.problem), pass_rate=rate, mean_tokens=1.0, band=Band.MEDIUM
        )
        return replace(one, group=replace(one.group, problem=problem))

    never_graded = entry([0.0, 0.0], number=2)
    without_verdict = graded(3, [None, None], 1.0)
    first, second = graded(0, [1.0, 0.0, None], 0.25), graded(1, [1.0, 1.0, 0.0, 0.0], 0.75)

    metrics = collect_metrics(StepRollouts(1, 0, [first, second, never_graded, without_verdict]))

    # 0.25 and -0.25: variance 0.125, over two groups.
    assert {"reward/above_graded": 0.0, "reward/above_graded_error": 0.25} == part(
        metrics, "reward/above_graded", "reward/above_graded_error"
    )
    assert "reward/above_graded" not in collect_metrics(StepRollouts(1, 0, [first, never_graded]))


def test_a_response_that_breaks_its_verifier_counts_as_wrong_and_under_its_reason(entry):
    group = entry([1.0, 0.0])
    first, second = group.group.rollouts
    broken = replace(second, verdict=response_fault("timeout"))
    group = replace(group, group=replace(group.group, rollouts=(first, broken)))

    assert {
        "reward/mean": 0.5,
        "reward/response_fault_count": 1.0,
        "reward/reason/response_fault:timeout": 1.0,
    } == part(
        collect_metrics(StepRollouts(1, 0, [group])),
        *("reward/mean", "reward/response_fault_count", "reward/reason/response_fault:timeout"),
    )


def test_a_step_says_what_its_judge_prefers_besides_the_answer(entry):
    group = entry([1.0, 0.0])
    problem = group.group.problem.model_copy(update={"verifier": "generative_judge"})
    rows = tuple(
        replace(item, text="a" * length, verdict=scored(score, reason, detail))
        for item, length, score, reason, detail in zip(
            group.group.rollouts,
            (3, 1),
            (1.0, 0.5),
            ("wins", "orders_disagree"),
            ("as A: A, as B: B", "as A: A, as B: A"),
            strict=True,
        )
    )
    judged = replace(group, group=replace(group.group, problem=problem, rollouts=rows))

    metrics = collect_metrics(StepRollouts(1, 0, [group, judged]))

    assert {
        "judge/comparisons": 2.0,
        "judge/swap_consistency": 0.5,
        "judge/first_preference": 0.5,
        "judge/tied_groups": 0.0,
        "judge/over_reference": 0.5,
    } == part(
        metrics,
        *("judge/comparisons", "judge/swap_consistency", "judge/first_preference"),
        *("judge/tied_groups", "judge/over_reference"),
    )
    assert 1.0 == pytest.approx(metrics["judge/length_correlation"])
    assert not [name for name in collect_metrics(StepRollouts(1, 0, [group])) if "judge" in name]


def test_lengths_are_of_finished_responses_and_tokens_of_all_that_was_generated(
    entry, problems, make_rollout
):
    groups = [
        entry([1.0, 0.0], lengths=[2, 6], new_tokens=8),
        entry([1.0, 0.0], lengths=[3, 5], new_tokens=5, draft_tokens=2),
    ]
    # Three of the second group's eight tokens were generated in an earlier step.
    waiting = OpenGroup("1/0/3", problems[3], 0, 2, (make_rollout(),))
    found = StepRollouts(1, 0, groups, in_flight=[InFlightPrompt(waiting, 4, 1)])

    assert {
        "rollout/length_tokens": 16 / 4,
        "rollout/generated_tokens": 8.0 + 7.0 + 5.0,
        "rollout/draft_tokens": 2.0,
        "rollout/in_flight_groups": 1.0,
    } == part(
        collect_metrics(found),
        *("rollout/length_tokens", "rollout/generated_tokens"),
        *("rollout/draft_tokens", "rollout/in_flight_groups"),
    )


def test_truncated_responses_are_those_that_reached_their_limit(entry):
    cut = entry([0.0, 1.0], rollout={"stop_reason": StopReason.LENGTH})
    found = StepRollouts(1, 0, [cut, entry([0.0, 1.0])])

    assert 0.5 == collect_metrics(found)["rollout/truncated_share"]


@pytest.mark.parametrize(
    ("versions", "staleness", "share"),
    [
        ({"policy_version": 4}, 0.0, 0.0),  # step 5 trains version 4
        ({"policy_version": 3}, 1.0, 0.5),
        ({"policy_version": 4, "earlier": ((2, 1),)}, 2.0, 0.125),  # begun two versions ago
    ],
)
def test_staleness_is_that_of_the_oldest_token_and_a_share_of_all(
    entry, versions, staleness, share
):
    fresh = entry([1.0, 0.0], rollout={"policy_version": 4})
    found = StepRollouts(5, 4, [fresh, entry([1.0, 0.0], rollout=versions)])

    metrics = collect_metrics(found)
    assert staleness == metrics["rollout/staleness_versions"]
    assert share == metrics["rollout/stale_share"]


def test_sets_that_tokens_were_drawn_from_are_measured_where_there_are_any(entry):
    kept = end_to_end([np.array(one, np.int32) for one in ([0, 7, 9], [1], [2], [])])
    metrics = collect_metrics(StepRollouts(1, 0, [entry([1.0, 0.0], rollout={"kept": kept})]))

    assert {"rollout/kept_tokens": 5 / 3, "rollout/alone_share": 2 / 3} == part(
        metrics, "rollout/kept_tokens", "rollout/alone_share"
    )
    plain = collect_metrics(StepRollouts(1, 0, [entry([1.0, 0.0])]))
    assert metrics.keys() - plain.keys() == {
        "rollout/kept_tokens",
        "rollout/kept_tokens_p99",
        "rollout/alone_share",
    }


def test_a_step_without_a_finished_group_has_zeros_and_no_staleness():
    metrics = collect_metrics(StepRollouts(3, 2, []))

    assert set(metrics.values()) == {0.0}
    assert 0.0 == metrics["reward/mean"]


def test_every_stage_of_the_elimination_is_counted_by_what_it_did(entry, problems):
    groups = [
        entry([1.0, 0.0]),
        entry([1.0, 1.0], GroupOutcome.ZERO_VARIANCE_TRAINED),
        entry([0.5, 0.5], GroupOutcome.ZERO_VARIANCE_PARTIAL),
        entry([0.0, 0.0], GroupOutcome.SURPLUS),
        entry([1.0, 0.0], draw=1),
    ]
    skipped = [
        SkippedPrompt(problems[5], 0, GroupOutcome.SKIPPED_ZERO_VARIANCE, 40),
        SkippedPrompt(problems[6], 0, GroupOutcome.SKIPPED_ZERO_VARIANCE, 2),
        SkippedPrompt(problems[7], 0, GroupOutcome.SKIPPED_BAND, 8),
    ]

    assert {
        "zero_variance/share": 3 / 4,  # of the first draw: three of four
        "zero_variance/trained_share": 2 / 4,  # of the batch: surplus is not in it
        "zero_variance/skipped_zero_variance_count": 2.0,
        "zero_variance/skipped_band_count": 1.0,
        "zero_variance/saved_tokens": 50.0,
        "zero_variance/dropped_groups": 1.0,
        "zero_variance/trained_groups": 1.0,
        "zero_variance/zero_variance_partial_groups": 1.0,
    } == zero_variance_metrics(StepRollouts(1, 0, groups, skipped=skipped))


def test_ties_count_as_zero_variance(entry):
    groups = [
        entry([1.0, 0.0]),
        entry([0.71, 0.70], GroupOutcome.ZERO_VARIANCE_NOISE),
        entry([0.5, 0.5], GroupOutcome.ZERO_VARIANCE_PARTIAL),
        entry([1.0, 1.0], GroupOutcome.SURPLUS),
    ]

    found = zero_variance_metrics(StepRollouts(1, 0, groups))

    assert 3 / 4 == found["zero_variance/share"]
    assert 2 / 3 == found["zero_variance/trained_share"]
    assert 1.0 == found["zero_variance/zero_variance_partial_groups"]


def test_an_abstention_alone_does_not_make_a_group_vary(entry):
    found = StepRollouts(1, 0, [entry([1.0, 1.0, None]), entry([1.0, None, None])])

    assert 1.0 == zero_variance_metrics(found)["zero_variance/share"]


def scores(batch, logprob=-1.0, entropy=0.0, experts=None):
    shape = batch.tokens.tokens_NT.shape
    return TokenScores(torch.full(shape, logprob), torch.full(shape, entropy), experts)


def test_policy_numbers_are_means_over_updates_and_shares_over_tokens(settings, entry):
    batch = build(settings, [entry([1.0, 0.0])])
    old = scores(batch, entropy=9.0)
    old.entropy_NT[batch.tokens.response_NT] = torch.arange(8.0)  # outside it is not counted
    losses = [
        {"loss": 1.0, "grad_norm": 2.0, "clipped_tokens": 3.0, "tokens": 4.0},
        {"loss": 2.0, "grad_norm": 6.0, "clipped_tokens": 4.0, "tokens": 8.0},
    ]

    assert {
        "policy/entropy_nats": 3.5,
        "policy/loss": 1.5,
        "policy/grad_norm": 4.0,
        "policy/clip_share": 7 / 12,
        "policy/clip_share_last": 0.5,
        "policy/trained_sequences": 2.0,
        "policy/trained_tokens": 12.0,
    } == policy_metrics(old, batch, losses)


def test_updates_that_overflow_in_fp16_are_counted_with_the_loss_scale_they_end_at(settings, entry):
    batch = build(settings, [entry([1.0, 0.0])])
    common = {"loss": 1.0, "grad_norm": 0.0, "clipped_tokens": 0.0, "tokens": 4.0}
    losses = [
        common | {"overflow_updates": 1.0, "loss_scale": 32_768.0},
        common | {"overflow_updates": 1.0, "loss_scale": 16_384.0},
        common | {"overflow_updates": 0.0, "loss_scale": 16_384.0},
    ]

    found = policy_metrics(scores(batch), batch, losses)

    assert 2.0 == found["policy/overflow_updates"]
    assert 16_384.0 == found["policy/loss_scale"]


def test_a_step_that_trains_nothing_has_zeros(settings):
    batch = build(settings, [])

    assert {0.0} == set(policy_metrics(scores(batch), batch, []).values())


def test_mismatch_is_of_response_tokens_before_any_update(settings, entry):
    batch = build(settings, [entry([1.0, 0.0])])
    theirs_NT = batch.tokens.columns["rollout_logprobs"]
    same = scores(batch)
    same.logprobs_NT[batch.tokens.response_NT] = theirs_NT[batch.tokens.response_NT]
    shifted = replace(same, logprobs_NT=same.logprobs_NT + 0.5)

    assert 0.0 == mismatch_of(batch, same)["mismatch/mean_abs_logprob"]
    assert 0.5 == pytest.approx(mismatch_of(batch, shifted)["mismatch/mean_abs_logprob"])


def test_routes_are_compared_only_where_both_sides_have_them(settings, entry):
    off = settings.model_copy(update={"router_replay": RouterReplay.OFF})
    without, batch = build(off, [entry([1.0, 0.0])]), build(settings, [entry([1.0, 0.0])])
    native_NTLK = batch.tokens.padded_routes_NTLK
    real_NT = native_NTLK[:, :, 0, 0] != MISSING_ROUTE
    first = real_NT.nonzero()[0]
    native_NTLK[first[0], first[1]] += 5

    assert "mismatch/missing_routes" not in mismatch_of(without, scores(without))
    assert "mismatch/route_disagreement" not in mismatch_of(batch, scores(batch))
    assert 0.0 == mismatch_of(batch, scores(batch))["mismatch/missing_routes"]
    one = mismatch_of(batch, scores(batch, experts=native_NTLK))["mismatch/route_disagreement"]
    assert 1 / int(real_NT.sum()) == pytest.approx(one)
