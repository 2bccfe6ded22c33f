from dataclasses import replace

import numpy as np
import pytest
import torch

from data_schemas.ledgers import GroupOutcome, TokenUse
from data_schemas.rows import Domain
from tasks.algorithms.kept_sets import end_to_end
from tasks.algorithms.losses.protocol import TokenPlan
from tasks.algorithms.mismatch import SliceMismatch
from tasks.algorithms.terms.fold import fold_step, lost_tokens
from tasks.algorithms.terms.kl import KL
from tasks.algorithms.token_uses import token_uses
from tasks.rl.batch import build
from tasks.rl.collector import Cost, InFlightPrompt, SkippedPrompt, StepRollouts
from tasks.rl.groups import KeptPrompt, OpenGroup
from tasks.rl.ledger import (
    domain_metrics,
    ledger_rows,
    length_metrics,
    prompt_costs,
    skip_metrics,
    slice_metrics,
    use_metrics,
)
from tests.algorithms.signals import signal_of, terms_of


def values(row, *names):
    return tuple(getattr(row, name) for name in names)


@pytest.fixture
def step(entry, problems, make_rollout):
    """One prompt of every kind: trained, surplus, in flight, skipped."""
    return StepRollouts(
        step=7,
        policy_version=6,
        groups=[
            entry([1.0, 0.0, None, 0.5], number=0, new_tokens=16, pass_rate_change=0.25),
            entry([0.0] * 4, GroupOutcome.SURPLUS, number=1, new_tokens=12, draft_tokens=3),
            entry([1.0, 0.0, 0.0, 0.0], number=2, draw=1, new_tokens=16),
        ],
        skipped=[SkippedPrompt(problems[3], 0, GroupOutcome.SKIPPED_BAND, 40)],
        in_flight=[
            InFlightPrompt(OpenGroup("7/1/4", problems[4], 1, 4, (make_rollout(0, 5),)), 5, 2)
        ],
        costs=[Cost(1, problems[2].id, 0.5, 0.25, 3)],
    )


@pytest.fixture
def rows(settings, step):
    batch = build(settings, step.trained)
    advantages_NT = torch.ones(batch.tokens.tokens_NT.shape) * batch.tokens.response_NT
    advantages_NT[0] *= -2.0
    return ledger_rows(step, batch, advantages_NT, {})


def test_every_prompt_that_was_drawn_has_one_row(rows, problems):
    assert [problems[number].id for number in (0, 2, 1, 4, 3)] == [row.problem_id for row in rows]
    assert [
        GroupOutcome.NON_ZERO_VARIANCE,
        GroupOutcome.NON_ZERO_VARIANCE,
        GroupOutcome.SURPLUS,
        GroupOutcome.IN_FLIGHT,
        GroupOutcome.SKIPPED_BAND,
    ] == [row.outcome for row in rows]
    assert {7} == {row.step for row in rows}
    assert [0, 1, 0, 1, 0] == [row.round for row in rows]


def test_a_row_says_which_policy_sampled_how_many_of_its_tokens(settings, entry):
    group = entry([1.0, 0.0], lengths=[4, 6], rollout={"earlier": ((4, 3),), "policy_version": 6})
    heard = entry([1.0, 0.0], lengths=[4, 4], rollout={"sampled": np.array([True, False] * 2)})
    batch = build(settings, [group, heard])
    nothing_NT = torch.zeros(batch.tokens.tokens_NT.shape)

    first, second = ledger_rows(StepRollouts(7, 6, [group, heard]), batch, nothing_NT, {})

    assert (((4, 6), (6, 4)), 6) == (first.tokens_by_version, first.stale_tokens)
    assert ((3, 4),) == second.tokens_by_version


def test_generated_tokens_add_up_to_what_the_engine_made(rows, step):
    made = [*step.groups, *step.in_flight]

    assert 16 + 15 + 16 + 7 == sum(entry.new_tokens + entry.draft_tokens for entry in made)
    assert 54 == sum(row.generated_tokens for row in rows)
    assert 5 == sum(row.draft_tokens for row in rows)
    assert 40 == sum(row.saved_tokens for row in rows)


def test_every_generated_token_has_one_use(rows):
    uses = token_uses(rows)

    assert {
        TokenUse.TRAINED: 8 + 16,
        TokenUse.NO_ADVANTAGE: 8,
        TokenUse.SURPLUS: 12,
        TokenUse.IN_FLIGHT: 5,
        TokenUse.DRAFT: 3 + 2,
    } == {use: count for use, count in uses.items() if count}
    assert sum(row.generated_tokens for row in rows) == sum(uses.values())
    assert 1.0 == pytest.approx(sum(use_metrics(rows).values()))


@pytest.mark.parametrize("outcome", list(GroupOutcome))
def test_every_outcome_of_a_group_has_a_use(rows, outcome):
    row = rows[0].model_copy(update={"outcome": outcome})

    assert row.generated_tokens == sum(token_uses([row]).values())


def test_tokens_without_weight_in_the_loss_are_uses_of_their_own(settings, step):
    all_of_them = settings.model_copy(update={"terms": terms_of({"kind": "kl"})})
    batch = build(all_of_them, step.trained)
    advantages_NT = batch.advantages_N[:, None] * batch.tokens.response_NT
    response_NT = batch.tokens.response_NT
    first = response_NT.long().cumsum(dim=1)
    shape = response_NT.shape
    # Of every response the fourth token is cut, of those with an advantage the first is masked.
    # The loss drops the second of the first response.
    weights_NT, correction_NT = torch.ones(shape), torch.ones(shape)
    kept_NT = response_NT & (first < 4)
    correction_NT[first == 1] = 0.0
    weights_NT[0, first[0] == 2] = 0.0
    nothing_NT = torch.zeros(shape)
    plan = TokenPlan(nothing_NT.long(), weights_NT, nothing_NT, nothing_NT)

    signal = signal_of(
        response_NT,
        advantages_NT=advantages_NT,
        plan=plan,
        weights_NT=correction_NT,
        kept_NT=kept_NT,
    )
    lost = lost_tokens(fold_step([KL()], signal), batch.tokens.alone_NT)
    rows = ledger_rows(step, batch, advantages_NT, lost)

    # Responses of the two groups: advantages +, -, none, 0, and +, -, -, -.
    assert {
        TokenUse.TRAINED: 6 * 2 - 1,
        TokenUse.REGULARISED: 2 * 3,
        TokenUse.CUT: 8,
        TokenUse.MASKED: 6,
        TokenUse.DROPPED: 1,
        TokenUse.SURPLUS: 12,
        TokenUse.IN_FLIGHT: 5,
        TokenUse.DRAFT: 3 + 2,
    } == {use: count for use, count in token_uses(rows).items() if count}
    assert 11 == sum(row.trained_tokens for row in rows)


def test_a_token_that_was_alone_in_its_set_trains_nothing(settings, entry):
    kept = end_to_end([np.array(one, np.int32) for one in ([0, 7], [1], [2], [3, 4])])
    group = entry([1.0, 0.0], rollout={"kept": kept}, new_tokens=8)
    batch = build(settings, [group])
    advantages_NT = batch.advantages_N[:, None] * batch.tokens.response_NT
    ones_NT = torch.ones(advantages_NT.shape)
    plan = TokenPlan(ones_NT.long(), ones_NT, ones_NT, ones_NT)
    response_NT = batch.tokens.response_NT

    signal = signal_of(response_NT, advantages_NT=advantages_NT, plan=plan)
    lost = lost_tokens(signal, batch.tokens.alone_NT)
    rows = ledger_rows(StepRollouts(1, 0, [group]), batch, advantages_NT, lost)

    uses = {use: count for use, count in token_uses(rows).items() if count}
    assert {TokenUse.TRAINED: 4, TokenUse.SINGLETON: 4} == uses


def test_tokens_of_grading_are_in_the_account(rows):
    assert 54 + 100 == sum(token_uses(rows, grading=100).values())
    assert 100 == token_uses(rows, grading=100)[TokenUse.GRADING]


def test_a_step_that_generated_nothing_used_nothing():
    assert {0.0} == set(use_metrics([]).values())


def test_what_a_prompt_earns_is_the_size_of_its_advantages(rows):
    # Two responses of the first have an advantage: 4 tokens of -2 and 4 of 1; the third and
    # fourth have none (no verdict, and exactly the mean). All four of the other have 1.
    trained, other, *rest = rows

    assert (8, 12.0) == values(trained, "trained_tokens", "advantage_mass")
    assert (16, 16.0) == values(other, "trained_tokens", "advantage_mass")
    assert {(0, 0.0)} == {values(row, "trained_tokens", "advantage_mass") for row in rest}


def test_a_mean_score_leaves_abstentions_out(rows):
    names = ("rollouts", "solved", "abstained", "mean_score", "pass_rate_change")

    assert (4, 1, 1, 0.5, 0.25) == values(rows[0], *names)
    assert (4, 1, 0, 0.25, 0.0) == values(rows[1], *names)


def test_a_prompt_that_was_not_rolled_out_has_cost_nothing(rows):
    names = ("rollouts", "prompt_tokens", "generated_tokens", "saved_tokens")

    assert (0, 0, 0, 40) == values(rows[-1], *names)
    assert (0, 2, 7, 0) == values(rows[-2], *names)  # in flight: none has ended


def test_a_group_without_any_verdict_has_the_score_zero(settings, entry):
    found = StepRollouts(1, 0, [entry([None] * 4, GroupOutcome.UNSCORED)])
    batch = build(settings, found.trained)

    (row,) = ledger_rows(found, batch, torch.zeros(batch.tokens.tokens_NT.shape), {})

    assert (0.0, 4, 0) == values(row, "mean_score", "abstained", "trained_tokens")


def test_the_report_says_how_far_skips_have_moved_the_domains(rows):
    maths, other = rows[0], rows[1].model_copy(update={"domain": Domain.CODE})
    untrained = rows[2]
    asked = {Domain.MATHS: 3.0, Domain.CODE: 1.0}

    found = domain_metrics(asked, [maths, other, untrained])

    assert {
        "domains/asked_code": 0.25,
        "domains/trained_code": 0.5,
        "domains/asked_maths": 0.75,
        "domains/trained_maths": 0.5,
        "domains/moved_share": 0.25,
    } == found
    assert 0.0 == domain_metrics(asked, [untrained])["domains/moved_share"]


def test_seconds_are_returned_in_addition_to_the_rows(step, problems):
    (cost,) = prompt_costs(step)

    names = ("step", "round", "problem_id", "engine_seconds", "verifier_seconds", "judge_calls")
    assert (7, 1, problems[2].id, 0.5, 0.25, 3) == values(cost, *names)


def test_a_verifier_that_times_out_on_long_responses_is_seen_in_the_lengths_that_train(
    settings, entry
):
    scores, lengths = [1.0, 0.0, None, None], [4, 5, 90, 80]
    groups = [entry(scores, number=number, lengths=lengths) for number in range(6)]
    step = StepRollouts(3, 2, groups)

    found = length_metrics(step, build(settings, groups), {})

    assert found["length_bias/responses"] < -1.0
    assert found["length_bias/responses_chance"] < 0.01
    assert (0.0, 1.0) == (found["length_bias/groups"], found["length_bias/groups_chance"])


def test_a_mask_that_leaves_out_whole_responses_counts_and_one_of_single_tokens_does_not(
    settings, entry
):
    groups = [entry([1.0, 0.0], number=number, lengths=[4, 40]) for number in range(8)]
    step, batch = StepRollouts(3, 2, groups), build(settings, groups)
    long_NT = batch.tokens.response_NT & (batch.tokens.lengths_N > 30)[:, None]
    some_NT = long_NT.clone()
    some_NT[:, :30] = False

    masked = length_metrics(step, batch, {TokenUse.MASKED: long_NT})
    thinned = length_metrics(step, batch, {TokenUse.MASKED: some_NT})

    assert masked["length_bias/responses"] < -0.5
    assert masked["length_bias/responses_chance"] < 0.02
    assert (0.0, 1.0) == (thinned["length_bias/responses"], thinned["length_bias/responses_chance"])


def test_groups_that_train_may_be_shorter_than_what_was_generated(settings, entry):
    groups = [
        entry([1.0, 0.0], number=number, lengths=[4, 6])
        if number < 6
        else entry([0.5, 0.5], GroupOutcome.ZERO_VARIANCE_PARTIAL, number=number, lengths=[60, 50])
        for number in range(12)
    ]

    found = length_metrics(StepRollouts(3, 2, groups), build(settings, groups), {})

    assert found["length_bias/groups"] < -0.5
    assert found["length_bias/groups_chance"] < 0.01
    assert 0.0 == found["length_bias/responses"]


def test_the_ledger_says_with_which_probability_a_prompt_was_kept_or_skipped(
    settings, entry, problems
):
    kept = KeptPrompt(0.1, 2.5, is_clipped=True)
    step = StepRollouts(
        step=1,
        policy_version=0,
        groups=[entry([1.0, 0.0], kept=kept), entry([1.0, 0.0], number=1)],
        skipped=[SkippedPrompt(problems[2], 0, GroupOutcome.SKIPPED_ZERO_VARIANCE, 8, 0.3)],
    )
    batch = build(settings, step.trained)
    rows = ledger_rows(step, batch, torch.ones(batch.tokens.tokens_NT.shape), {})

    assert [(0.1, 2.5, True), (1.0, 1.0, False), (0.3, 0.0, False)] == [
        values(row, "keep_probability", "weight", "clipped_weight") for row in rows
    ]
    found = skip_metrics(rows)
    assert 1.0 == found["skips/clipped_groups"]
    assert found["skips/effective_share"] == pytest.approx(3.5**2 / (2 * 7.25))
    assert {} == skip_metrics(rows[1:])


def test_a_prompt_counts_in_the_shares_of_domains_by_its_weight(settings, entry):
    groups = [entry([1.0, 0.0], kept=KeptPrompt(0.5, 3.0)), entry([1.0, 0.0], number=1)]
    step = StepRollouts(step=1, policy_version=0, groups=groups)
    batch = build(settings, step.trained)
    rows = ledger_rows(step, batch, torch.ones(batch.tokens.tokens_NT.shape), {})
    rows[1] = rows[1].model_copy(update={"domain": Domain.CODE})

    found = domain_metrics({Domain.MATHS: 3.0, Domain.CODE: 1.0}, rows)

    assert 0.0 == found["domains/moved_share"]
    assert 0.75 == found["domains/trained_maths"]


def test_a_step_reports_every_domain_and_language_by_itself(entry):
    thai = entry([1.0, None, 0.0, 1.0], lengths=[2, 4, 6, 8])
    other = replace(thai.group, problem=thai.group.problem.model_copy(update={"language": "th"}))
    groups = [replace(thai, group=other), entry([0.0] * 4, number=1)]
    k3 = [SliceMismatch("language:th", 4, 0.25, 0.0), SliceMismatch("domain:a + domain:b", 9, 1, 1)]

    found = slice_metrics(groups, k3)

    assert 5.0 == found["slices/language/th/length_tokens"]
    assert 0.25 == found["slices/language/th/abstained_share"]
    assert found["slices/language/th/reward"] == pytest.approx(2 / 3)
    assert 0.25 == found["slices/language/th/k3"]
    assert 0.0 == found["slices/language/en/reward"] == found["slices/language/en/truncated_share"]
    assert found["slices/domain/maths/reward"] == pytest.approx(2 / 7)
    assert not [name for name in found if "+" in name]
