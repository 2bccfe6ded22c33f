import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy.optimize import brentq

from data_schemas import presets
from data_schemas.machine_settings import LARGEST_SEED
from data_schemas.reports import Decision, GateRecord
from data_schemas.rl_settings import (
    AuxiliarySettings,
    Correction,
    EngineSettings,
    LossSettings,
    MismatchSettings,
    RLSettings,
)
from data_schemas.rollouts import TokenUse
from tasks.algorithms.phase_choices import require_fit
from tasks.algorithms.token_budget import SEED_STRIDE
from tasks.algorithms.token_uses import token_uses
from tasks.engines.partial_batch import ROW
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.errors import SettingsError
from tasks.rl import gate, objective
from tasks.rl.batch import build
from tasks.rl.collector import Collected
from tasks.rl.ledger import ledger_rows, mismatch_of
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.rl.update.budget_of_world import trained_tokens

VECTOR = json.loads((Path(__file__).parent / "c3po_vectors.json").read_text())


@pytest.mark.parametrize("parts", [1, 2, 6])
@pytest.mark.parametrize("rows", [0, 1, 5, 6, 40])
def test_every_sequence_is_in_exactly_one_update_and_no_update_is_empty(settings, rows, parts):
    several = settings.model_copy(update={"num_mini_batches": parts})
    found = objective.split(several, rows, 3)

    assert list(range(rows)) == sorted(torch.cat(found).tolist()) if rows else () == found
    assert min(parts, rows) == len(found)
    sizes = [len(part) for part in found]
    assert max(sizes, default=0) - min(sizes, default=0) <= 1


def test_the_order_follows_from_seed_and_step_alone(settings):
    def order(step, seed=0):
        seeded = settings.model_copy(update={"seed": seed})
        return torch.cat(objective.split(seeded, 24, step)).tolist()

    assert order(3) == order(3)
    assert order(3) != order(4)
    assert order(3) != order(3, seed=1)


def test_the_published_budget_of_a_rank_is_the_same_for_every_number_of_ranks():
    ranks = 256
    for rl in (presets.RING_LITE.rl_one, presets.RING_LITE.rl_two):
        assert ranks * 409_600 == objective.token_budget(rl)
        smaller = rl.model_copy(update={"prompts_per_step": rl.prompts_per_step // 2})
        assert ranks // 2 * 409_600 == objective.token_budget(smaller)


def test_a_small_budget_is_one_token_and_not_all_of_them(settings, entry):
    # 0.125 * 2 * 2 / 1 = 0.5 tokens, which rounds to 0.
    loss = LossSettings(kind="grpo", budget_per_response=0.125)
    changes = {"prompts_per_step": 2, "group_size": 2, "num_mini_batches": 1, "loss": loss}
    chosen = settings.model_copy(update=changes)
    batch = build(chosen, [entry([1.0, 0.0]), entry([0.0, 1.0])])
    rows = objective.split(chosen, 4, 1)

    assert 1 == objective.token_budget(chosen)
    assert 1 == int(objective.kept_by_budget(chosen, batch, rows, 1).sum())


def test_the_budget_draws_otherwise_in_every_step_of_every_seed(settings, entry):
    loss = LossSettings(kind="grpo", budget_per_response=2.0)
    changes = {"prompts_per_step": 4, "group_size": 16, "num_mini_batches": 1, "loss": loss}
    batch = build(settings, [entry([1.0, 0.0] * 8) for _ in range(4)])
    rows = (torch.arange(64),)

    def draw(seed, step):
        chosen = settings.model_copy(update=changes | {"seed": seed})
        kept_NT = objective.kept_by_budget(chosen, batch, rows, step)
        return tuple(kept_NT.any(dim=1).tolist())

    # The largest seed: what is made of it has to fit into torch's 64 bits.
    places = [(seed, step) for seed in (0, 1, 2, LARGEST_SEED) for step in range(1, 5)]
    assert len(places) == len({draw(seed, step) for seed, step in places})
    assert draw(1, 2) == draw(1, 2)


@pytest.mark.parametrize(("of_mean", "parts"), [(0.5, 1), (0.5, 2), (1.0, 2), (2.0, 1)])
def test_an_update_trains_its_budget_or_all_it_has(settings, entry, of_mean, parts):
    groups = [entry([1.0, 0.0] * 8, lengths=range(1, 17)) for _ in range(4)]
    batch = build(settings, groups)
    mean = float(batch.tokens.response_NT.sum()) / len(batch.owners)
    loss = LossSettings(kind="grpo", budget_per_response=of_mean * mean)
    chosen = settings.model_copy(
        update={
            "prompts_per_step": 4,
            "group_size": 16,
            "num_mini_batches": parts,
            "loss": loss,
        }
    )
    rows = objective.split(chosen, len(batch.owners), 1)

    plan = objective.policy_plan(chosen, batch, old_scores(batch), rows, vocabulary=768, step=1)

    for part in rows:
        tokens = int(batch.tokens.response_NT[part].sum())
        trained = int((plan.weights_NT[part] > 0).sum())
        assert min(tokens, round(of_mean * mean * 64 / parts)) == trained


def test_two_ranks_train_the_budget_of_the_whole_update_and_what_one_process_selects(
    settings, entry
):
    groups = [entry([1.0, 0.0] * 8, lengths=range(1, 17)) for _ in range(4)]
    batch = build(settings, groups)
    loss = LossSettings(kind="grpo", budget_per_response=4.0)
    changes = {"prompts_per_step": 4, "group_size": 16, "num_mini_batches": 2, "loss": loss}
    chosen = settings.model_copy(update=changes)
    rows = objective.split(chosen, len(batch.owners), 1)
    old = old_scores(batch)
    plan = objective.policy_plan(chosen, batch, old, rows, vocabulary=768, step=1)
    columns = objective.loss_columns(old, torch.ones_like(old.logprobs_NT), plan, None)
    numbered = columns | {ROW: torch.arange(len(batch.owners))}
    training = replace(batch.tokens, experts_NTLK=None, columns=numbered)

    alone = trained_tokens(chosen, training, rows)
    team, _ = run_world(trained_tokens, 2, chosen, training, rows)

    assert alone == team
    assert [4.0 * 64 / 2] * 2 == [sum(update.values()) for update in team]
    for part, update in zip(rows, team, strict=True):
        assert sorted(part.tolist()) == sorted(update)
        # What a rank trains is not half of the budget: it is its part of one selection.
        assert sum(update[int(row)] for row in part[::2]) != 4.0 * 64 / 4


def c3po_step(settings, entry):
    """Five responses with given advantages, and the seed whose draw has the vector's order."""
    lengths, order = VECTOR["lengths"], VECTOR["order"]
    loss = LossSettings(
        kind="grpo",
        budget_per_response=VECTOR["Phi"] / len(lengths),
        auxiliary=AuxiliarySettings(kl=VECTOR["beta"]),
    )
    changes = {"prompts_per_step": 1, "group_size": 5, "num_mini_batches": 1, "loss": loss}
    group = entry([1.0, 0.0, 0.5, 0.5, 0.75], lengths=lengths, advantages=VECTOR["advantages"])
    batch = build(settings.model_copy(update=changes), [group])
    for seed in range(1000):
        chosen = settings.model_copy(update=changes | {"seed": seed})
        (rows,) = parts = objective.split(chosen, 5, 1)
        drawn = torch.Generator().manual_seed((seed * SEED_STRIDE + 1) * SEED_STRIDE)
        if order == rows[torch.randperm(5, generator=drawn)].tolist():
            return chosen, group, batch, parts
    raise AssertionError("no seed has that order")


def with_k3(gap):
    """The log-ratio whose k3 is this."""
    return brentq(lambda d: math.expm1(d) - d - gap, 1e-9, 1.0)


def test_c3po_draws_from_all_responses_and_its_terms_act_on_all_that_it_draws(settings, entry):
    chosen, group, batch, parts = c3po_step(settings, entry)
    expected = VECTOR["all_responses"]
    old = old_scores(batch)
    plan = objective.policy_plan(chosen, batch, old, parts, vocabulary=8, step=1)
    kept_NT = objective.kept_by_budget(chosen, batch, parts, 1)
    response_NT = batch.tokens.response_NT
    advantages_NT = batch.advantages_N[:, None] * response_NT
    gaps_N = torch.tensor([with_k3(one) for one in VECTOR["kl_per_token"]])
    reference_NT = old.logprobs_NT + gaps_N[:, None] * response_NT
    columns = objective.loss_columns(old, advantages_NT, plan, reference_NT)
    training = replace(batch.tokens, experts_NTLK=None, columns=columns)
    value, counts = objective.policy_loss(chosen, 5.0)(old.logprobs_NT, training)

    assert expected["kept"] == kept_NT.sum(dim=1).tolist()
    assert expected["policy_tokens"] == counts["tokens"]
    assert expected["objective"] == pytest.approx(-float(value), abs=2e-6)

    ones_NT = torch.ones(response_NT.shape)
    lost = objective.without_weight(
        chosen, batch.tokens, advantages_NT, ones_NT, plan, kept_NT, old.logprobs_NT
    )
    found = Collected(1, 0, [replace(group, new_tokens=20)])
    uses = token_uses(ledger_rows(found, batch, advantages_NT, lost))
    assert {
        TokenUse.TRAINED: VECTOR["uses"]["trained"],
        TokenUse.REGULARISED: VECTOR["uses"]["regularised_only"],
        TokenUse.CUT: VECTOR["uses"]["cut_by_budget"],
    } == {use: count for use, count in uses.items() if count}


def test_what_the_budget_cuts_is_in_no_forward_pass_of_the_update(settings, entry):
    chosen, _, batch, parts = c3po_step(settings, entry)
    kept_NT = objective.kept_by_budget(chosen, batch, parts, 1)

    training = objective.without_cut(batch.tokens, kept_NT)

    assert torch.equal(kept_NT, training.response_NT)
    (rows,) = objective.kept_rows(parts, kept_NT)
    assert {0, 2, 3} == set(rows.tolist())
    # Two tokens of the prompt in front of each.
    assert [2 + 4, 2 + 3, 2 + 5] == training.lengths_N[[0, 2, 3]].tolist()


def decided(decision):
    return GateRecord(
        step=1,
        decision=decision,
        reason="",
        k3=0.0,
        mean_abs_logprob=0.0,
        extreme_share=0.0,
        effective_share=1.0,
        route_disagreement=None,
        probe_logprob=0.0,
    )


@pytest.fixture
def batch(settings, entry):
    return build(settings, [entry([1.0, 0.0])])


def old_scores(batch, gap=0.0):
    """The trainer's log-probs: those of the rollouts plus a gap on every response token."""
    logprobs_NT = batch.tokens.columns["rollout_logprobs"] + gap * batch.tokens.response_NT
    return TokenScores(logprobs_NT, torch.zeros(logprobs_NT.shape), None)


@pytest.mark.parametrize(
    ("decision", "correction", "weight"),
    [
        (Decision.PROCEED, Correction.TIS, 1.0),  # the gate decides, the setting says how
        (Decision.CORRECT, Correction.OFF, 2.0),  # TIS at least: exp(1) is cut to the cap
        (Decision.CORRECT, Correction.TIS, 2.0),
        (Decision.CORRECT, Correction.ICEPOP, 0.0),  # exp(1) is beyond the cap
    ],
)
def test_a_step_is_corrected_where_the_gate_decided_so(
    settings, batch, decision, correction, weight
):
    engines = EngineSettings(mismatch=MismatchSettings(correction=correction, cap=2.0))
    chosen = settings.model_copy(update={"engines": engines})
    weights_NT, _ = objective.corrections(chosen, decided(decision), batch, old_scores(batch, 1.0))

    assert {weight} == set(weights_NT[batch.tokens.response_NT].tolist())
    outside = weights_NT[~batch.tokens.response_NT].tolist()
    assert {1.0} == set(outside)


def test_a_band_masks_responses_though_the_gate_would_let_the_step_proceed(settings, batch):
    mismatch = MismatchSettings(geometric_band=(0.99, 1.01))
    chosen = settings.model_copy(update={"engines": EngineSettings(mismatch=mismatch)})
    old = old_scores(batch)
    old.logprobs_NT[0] += 0.1 * batch.tokens.response_NT[0]
    record = gate.decide(1, mismatch_of(batch, old), 0.0, mismatch)

    weights_NT, metrics = objective.corrections(chosen, record, batch, old)

    assert (Decision.CORRECT, "mismatch has a band for whole responses") == (
        record.decision,
        record.reason,
    )
    masks = [
        set(row[mask].tolist())
        for row, mask in zip(weights_NT, batch.tokens.response_NT, strict=True)
    ]
    assert [{0.0}, {1.0}] == masks
    assert 0.5 == metrics["correction/masked_responses"]


def test_a_stale_response_below_its_group_is_left_out_and_still_counted(settings, batch):
    old = old_scores(batch)
    chosen = grpo(settings, stale_below=0.5, clip_low=0.9)  # ratio 0.55 is not clipped
    plan = planned(chosen, batch, old)
    rollout_NT = batch.tokens.columns["rollout_logprobs"]
    advantages_NT = batch.advantages_N[:, None] * batch.tokens.response_NT
    columns = objective.loss_columns(old, advantages_NT, plan, None, rollout_NT)
    training = replace(batch.tokens, experts_NTLK=None, columns=columns)
    fallen_NT = old.logprobs_NT - 0.6 * batch.tokens.response_NT

    def value_and_slope(loss):
        mine_NT = fallen_NT.clone().requires_grad_()
        value, counts = objective.policy_loss(loss, 2)(mine_NT, training)
        value.backward()
        return mine_NT.grad.abs().sum(dim=1), counts

    slope_N, counts = value_and_slope(chosen)
    plain_N, _ = value_and_slope(grpo(settings, clip_low=0.9))

    (right,) = (batch.advantages_N > 0).nonzero()[:, 0].tolist()
    assert 0.0 == slope_N[1 - right] < plain_N[1 - right]
    assert plain_N[right] == slope_N[right] > 0.0  # the divisor is that of both responses
    assert 0.5 == counts["stale_share"]


def test_what_the_policy_has_left_before_the_step_is_booked_as_masked(settings, batch):
    chosen, old = grpo(settings, stale_below=0.5), old_scores(batch)
    plan, response_NT = planned(chosen, batch, old), batch.tokens.response_NT
    advantages_NT = batch.advantages_N[:, None] * response_NT
    rollout_NT = batch.tokens.columns["rollout_logprobs"]

    def masked(gap):
        lost = objective.without_weight(
            *(chosen, batch.tokens, advantages_NT, torch.ones(response_NT.shape), plan),
            *(response_NT, rollout_NT - gap),
        )
        return lost[TokenUse.MASKED]

    assert not bool(masked(0.4).any())
    assert torch.equal(response_NT & (advantages_NT < 0), masked(0.6))


def planned(settings, batch, old):
    rows = objective.split(settings, len(batch.owners), 1)
    return objective.policy_plan(settings, batch, old, rows, vocabulary=288, step=1)


def training_batch(batch, old, plan, advantage, reference_NT=None):
    advantages_NT = advantage * batch.tokens.response_NT
    columns = objective.loss_columns(old, advantages_NT, plan, reference_NT)
    return TokenBatch(
        tokens_NT=batch.tokens.tokens_NT,
        lengths_N=batch.tokens.lengths_N,
        response_NT=batch.tokens.response_NT,
        experts_NTLK=None,
        columns=columns,
    )


def test_a_reference_is_a_column_only_where_there_is_one(settings, batch):
    old = old_scores(batch)
    plan = planned(settings, batch, old)
    without = objective.loss_columns(old, old.logprobs_NT, plan, None)

    assert {"reference_logprobs"} == (
        objective.loss_columns(old, old.logprobs_NT, plan, old.logprobs_NT).keys() - without.keys()
    )


def grpo(settings, **changes):
    return settings.model_copy(update={"loss": LossSettings(kind="grpo", **changes)})


def test_before_the_first_update_the_loss_is_minus_the_mean_advantage(settings, batch):
    chosen, old = grpo(settings), old_scores(batch)
    tokens = training_batch(batch, old, planned(chosen, batch, old), 0.75)
    value, counts = objective.policy_loss(chosen, 2.0)(old.logprobs_NT, tokens)

    assert -0.75 == pytest.approx(float(value))
    assert {"clipped_tokens": 0.0, "tokens": 8.0} == counts


@pytest.mark.parametrize(("advantage", "bound"), [(1.0, 1.3), (-1.0, 1.5)])
def test_a_ratio_is_cut_only_where_that_lowers_the_objective(settings, batch, advantage, bound):
    chosen, old = grpo(settings, clip_low=0.2, clip_high=0.3), old_scores(batch)
    tokens = training_batch(batch, old, planned(chosen, batch, old), advantage)
    moved_NT = old.logprobs_NT + math.log(1.5) * batch.tokens.response_NT
    value, counts = objective.policy_loss(chosen, 2.0)(moved_NT, tokens)

    assert -advantage * bound == pytest.approx(float(value), rel=1e-5)
    assert (8.0 if advantage > 0 else 0.0) == counts["clipped_tokens"]


def test_a_token_that_kl_cov_holds_pays_for_every_nat_that_it_moves(settings, batch):
    chosen, old = grpo(settings, clip_high=0.3), old_scores(batch)
    tokens = training_batch(batch, old, planned(chosen, batch, old), 1.0)
    held_NT = torch.zeros_like(tokens.response_NT)
    held_NT[0, int(tokens.response_NT[0].nonzero()[0])] = True
    held = replace(tokens, columns=tokens.columns | {"held": held_NT})
    loss = objective.policy_loss(chosen, 2.0)
    moved_NT = old.logprobs_NT + math.log(1.5) * batch.tokens.response_NT

    assert float(loss(old.logprobs_NT, tokens)[0]) == float(loss(old.logprobs_NT, held)[0])
    # Two responses of four tokens: one of eight pays.
    paid = math.log(1.5) / 8
    assert -1.3 + paid == pytest.approx(float(loss(moved_NT, held)[0]), rel=1e-5)


def test_what_clip_cov_draws_is_booked_as_masked(settings, batch):
    chosen, old = grpo(settings, clip_cov=0.25), old_scores(batch)
    shape = batch.tokens.response_NT.shape
    advantages_NT = torch.tensor([[2.0], [-2.0]]).expand(shape) * batch.tokens.response_NT
    near = replace(old, logprobs_NT=advantages_NT.clone())
    weights_NT, held_NT = objective.entropy_control(chosen, batch, near, advantages_NT, 1)
    plan = planned(chosen, batch, old)
    lost = objective.without_weight(
        *(chosen, batch.tokens, advantages_NT, weights_NT, plan, batch.tokens.response_NT),
        old.logprobs_NT,
    )

    assert held_NT is None
    assert 2 == int((weights_NT == 0).sum()) == int(lost[TokenUse.MASKED].sum())


def test_losses_of_micro_batches_add_up_to_that_of_the_update(settings, batch):
    chosen, old = grpo(settings), old_scores(batch)
    tokens = training_batch(batch, old, planned(chosen, batch, old), 0.5)
    loss = objective.policy_loss(chosen, 2.0)
    whole, counts = loss(old.logprobs_NT, tokens)
    parts = [
        loss(old.logprobs_NT[row : row + 1], tokens.select(torch.tensor([row]))) for row in (0, 1)
    ]

    assert float(whole) == pytest.approx(sum(float(value) for value, _ in parts))
    assert counts["tokens"] == sum(part["tokens"] for _, part in parts)


def test_the_drift_from_the_start_model_costs_beta_times_k3(settings, batch):
    chosen = grpo(settings, auxiliary=AuxiliarySettings(kl=0.1))
    old = old_scores(batch)
    away_NT = old.logprobs_NT - math.log(2) * batch.tokens.response_NT
    plan = planned(chosen, batch, old)
    # The start model finds every token half as likely: k3 = 1/2 - 1 - ln(1/2).
    k3 = 0.5 - 1.0 + math.log(2)
    tokens = training_batch(batch, old, plan, 0.0, away_NT)
    value, counts = objective.policy_loss(chosen, 2.0)(old.logprobs_NT, tokens)

    assert k3 == pytest.approx(counts["kl"], rel=1e-5)
    assert 0.1 * k3 == pytest.approx(float(value), rel=1e-5)


def test_without_beta_no_reference_is_read(settings, batch):
    chosen, old = grpo(settings), old_scores(batch)
    tokens = training_batch(batch, old, planned(chosen, batch, old), 1.0)
    _, counts = objective.policy_loss(chosen, 2.0)(old.logprobs_NT, tokens)

    assert "kl" not in counts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mismatch": {"correction": "tis"}}, "would see a ratio of 1"),
        ({"loss": {"kind": "espo"}}, "'espo' needs the entropies of that pass"),
        ({"zero_variance": {"rl_zvp_alpha": 0.1}}, "rl_zvp_alpha needs the entropies"),
        ({"router_replay": "r2"}, "'r2' needs the routes"),
    ],
)
def test_what_needs_the_pass_that_recorded_log_probs_replace_is_refused(change, message):
    mismatch = {"old_policy": "rollout"} | change.pop("mismatch", {})
    given = {
        "domains": {"maths": 1.0},
        "loss": {"kind": "dapo"},
        "zero_variance": {"rl_zvp_alpha": 0.0},
        "engines": {"mismatch": mismatch},
    }
    with pytest.raises((ValueError, SettingsError), match=message):
        require_fit(RLSettings.model_validate(given | change))
    assert not RLSettings.model_validate(
        given | {"engines": {"mismatch": {"old_policy": "rollout"}}}
    ).recomputes
