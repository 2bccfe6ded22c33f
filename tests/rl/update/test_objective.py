import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy.optimize import brentq

from data_schemas import presets
from data_schemas.ledgers import TokenUse
from data_schemas.machine_settings import LARGEST_SEED
from data_schemas.reports import GateRecord, MismatchDecision
from data_schemas.rl_settings import LossSettings, RLSettings
from tasks.algorithms.losses.table import whole_step
from tasks.algorithms.phase_choices import require_fit
from tasks.algorithms.terms.fold import fold_step, lost_tokens
from tasks.algorithms.terms.table import find_terms
from tasks.algorithms.terms.token_budget import SEED_STRIDE, TokenBudget
from tasks.algorithms.token_uses import token_uses
from tasks.engines.protocols import TokenScores
from tasks.engines.recording_loss import ROW
from tasks.errors import SettingsError
from tasks.rl import gate, objective
from tasks.rl.batch import build
from tasks.rl.collector import StepRollouts
from tasks.rl.groups import KeptPrompt
from tasks.rl.ledger import ledger_rows, mismatch_of
from tests.algorithms.signals import terms_of
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.records import filled
from tests.rl.update.budget_of_world import trained_tokens

LAB = "tasks/lab/terms/"
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
        (budget,) = (one for one in find_terms(rl.terms) if isinstance(one, TokenBudget))
        responses = rl.prompts_per_step * rl.group_size / rl.num_mini_batches
        totals = replace(whole_step(torch.ones(1, 1).bool()), responses_per_update=responses)
        assert ranks * 409_600 == budget.budget(totals)
        smaller = replace(totals, responses_per_update=responses / 2)
        assert ranks // 2 * 409_600 == budget.budget(smaller)


def test_a_small_budget_is_one_token_and_not_all_of_them(settings, entry):
    # 0.125 * 2 * 2 / 1 = 0.5 tokens, which rounds to 0.
    changes = {"prompts_per_step": 2, "group_size": 2, "num_mini_batches": 1}
    chosen = grpo(settings, budget(0.125)).model_copy(update=changes)
    batch = build(chosen, [entry([1.0, 0.0]), entry([0.0, 1.0])])

    assert 1 == int(folded(chosen, batch).kept_NT.sum())


def test_the_budget_draws_otherwise_in_every_step_of_every_seed(settings, entry):
    changes = {"prompts_per_step": 4, "group_size": 16, "num_mini_batches": 1}
    batch = build(settings, [entry([1.0, 0.0] * 8) for _ in range(4)])
    rows = (torch.arange(64),)

    def draw(seed, step):
        chosen = grpo(settings, budget(2.0)).model_copy(update=changes | {"seed": seed})
        return tuple(folded(chosen, batch, rows=rows, step=step).kept_NT.any(dim=1).tolist())

    # The largest seed: what is made of it has to fit into torch's 64 bits.
    places = [(seed, step) for seed in (0, 1, 2, LARGEST_SEED) for step in range(1, 5)]
    assert len(places) == len({draw(seed, step) for seed, step in places})
    assert draw(1, 2) == draw(1, 2)


@pytest.mark.parametrize(("of_mean", "parts"), [(0.5, 1), (0.5, 2), (1.0, 2), (2.0, 1)])
def test_an_update_trains_its_budget_or_all_it_has(settings, entry, of_mean, parts):
    groups = [entry([1.0, 0.0] * 8, lengths=range(1, 17)) for _ in range(4)]
    batch = build(settings, groups)
    mean = float(batch.tokens.response_NT.sum()) / len(batch.owners)
    changes = {"prompts_per_step": 4, "group_size": 16, "num_mini_batches": parts}
    chosen = grpo(settings, budget(of_mean * mean)).model_copy(update=changes)
    rows = objective.split(chosen, len(batch.owners), 1)

    plan = folded(chosen, batch).plan

    for part in rows:
        tokens = int(batch.tokens.response_NT[part].sum())
        trained = int((plan.weights_NT[part] > 0).sum())
        assert min(tokens, round(of_mean * mean * 64 / parts)) == trained


def test_two_ranks_train_the_budget_of_the_whole_update_and_what_one_process_selects(
    settings, entry
):
    groups = [entry([1.0, 0.0] * 8, lengths=range(1, 17)) for _ in range(4)]
    batch = build(settings, groups)
    changes = {"prompts_per_step": 4, "group_size": 16, "num_mini_batches": 2}
    chosen = grpo(settings, budget(4.0)).model_copy(update=changes)
    rows = objective.split(chosen, len(batch.owners), 1)
    old = old_scores(batch)
    ones_NT = torch.ones_like(old.logprobs_NT)
    columns = objective.loss_columns(old, folded(chosen, batch, advantages_NT=ones_NT))
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
    changes = {"prompts_per_step": 1, "group_size": 5, "num_mini_batches": 1}
    changes |= {
        "loss": LossSettings(kind="grpo"),
        "terms": terms_of(
            budget(VECTOR["Phi"] / len(lengths)), {"kind": "kl", "weight": VECTOR["beta"]}
        ),
    }
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
    response_NT = batch.tokens.response_NT
    gaps_N = torch.tensor([with_k3(one) for one in VECTOR["kl_per_token"]])
    reference_NT = old.logprobs_NT + gaps_N[:, None] * response_NT
    signal = folded(chosen, batch, rows=parts, reference_NT=reference_NT)
    columns = objective.loss_columns(old, signal)
    training = replace(batch.tokens, experts_NTLK=None, columns=columns)
    value, counts = loss_of(chosen, 5.0)(old.logprobs_NT, training)

    assert expected["kept"] == signal.kept_NT.sum(dim=1).tolist()
    assert expected["policy_tokens"] == counts["tokens"]
    assert expected["objective"] == pytest.approx(-float(value), abs=2e-6)

    lost = lost_tokens(signal, batch.tokens.alone_NT)
    found = StepRollouts(1, 0, [replace(group, new_tokens=20)])
    uses = token_uses(ledger_rows(found, batch, signal.advantages_NT, lost))
    assert {
        TokenUse.TRAINED: VECTOR["uses"]["trained"],
        TokenUse.REGULARISED: VECTOR["uses"]["regularised_only"],
        TokenUse.CUT: VECTOR["uses"]["cut_by_budget"],
    } == {use: count for use, count in uses.items() if count}


def test_what_the_budget_cuts_is_in_no_forward_pass_of_the_update(settings, entry):
    chosen, _, batch, parts = c3po_step(settings, entry)
    kept_NT = folded(chosen, batch, rows=parts).kept_NT

    training = objective.without_cut(batch.tokens, kept_NT)

    assert torch.equal(kept_NT, training.response_NT)
    (rows,) = objective.kept_rows(parts, kept_NT)
    assert {0, 2, 3} == set(rows.tolist())
    # Two tokens of the prompt in front of each.
    assert [2 + 4, 2 + 3, 2 + 5] == training.lengths_N[[0, 2, 3]].tolist()


def decided(decision):
    return filled(
        GateRecord, decision=decision, k3=1.0 if decision is MismatchDecision.CORRECT else 0.0
    )


@pytest.fixture
def batch(settings, entry):
    return build(settings, [entry([1.0, 0.0])])


def old_scores(batch, gap=0.0):
    """The trainer's log-probs: those of the rollouts plus a gap on every response token."""
    logprobs_NT = batch.tokens.columns["rollout_logprobs"] + gap * batch.tokens.response_NT
    return TokenScores(logprobs_NT, torch.zeros(logprobs_NT.shape), None)


def grpo(settings, *terms, **own):
    changes = {"loss": LossSettings(kind="grpo", **own), "terms": terms_of(*terms)}
    return settings.model_copy(update=changes)


def budget(tokens):
    return {"kind": "token_budget", "tokens_per_response": tokens}


def loss_of(settings, num_sequences):
    return objective.policy_loss(settings, num_sequences, settings.terms)


def folded(
    settings,
    batch,
    old=None,
    *,
    rows=None,
    step=1,
    decision=MismatchDecision.PROCEED,
    advantages_NT=None,
    reference_NT=None,
):
    """The tokens of a step after the fold over its terms."""
    old = old_scores(batch) if old is None else old
    first = objective.first_signal(
        settings,
        batch,
        (old, old),
        objective.split(settings, len(batch.owners), step) if rows is None else rows,
        vocabulary=288,
        step=step,
        reference_NT=old.logprobs_NT if reference_NT is None else reference_NT,
    )
    if advantages_NT is not None:
        first = replace(first, advantages_NT=advantages_NT)
    return fold_step(find_terms(objective.acting_terms(settings, decided(decision))), first)


@pytest.mark.parametrize(
    ("decision", "terms", "weight"),
    [
        (MismatchDecision.PROCEED, [], 1.0),
        (MismatchDecision.CORRECT, [], 2.0),  # TIS at least: exp(1) is cut to the cap
        (MismatchDecision.CORRECT, [{"kind": "kl"}], 2.0),
        (MismatchDecision.CORRECT, [{"kind": "tis", "cap": 1.5}], 1.5),
        (
            MismatchDecision.CORRECT,
            [{"kind": "icepop", "cap": 2.0}],
            0.0,
        ),  # exp(1) is beyond the cap
    ],
)
def test_a_step_is_corrected_where_the_gate_decided_so(settings, batch, decision, terms, weight):
    chosen = settings.model_copy(update={"terms": terms_of(*terms)})
    weights_NT = folded(chosen, batch, old_scores(batch, 1.0), decision=decision).weights_NT

    assert {weight} == set(weights_NT[batch.tokens.response_NT].tolist())
    outside = weights_NT[~batch.tokens.response_NT].tolist()
    assert {1.0} == set(outside)


def test_a_band_masks_responses_though_the_gate_would_let_the_step_proceed(settings, batch):
    band = {"kind": f"{LAB}geometric_band.py:GeometricBand"}
    chosen = settings.model_copy(update={"terms": terms_of(band)})
    old = old_scores(batch)
    old.logprobs_NT[0] += 0.1 * batch.tokens.response_NT[0]
    kinds = objective.correcting_kinds(chosen)
    record = gate.decide(1, mismatch_of(batch, old), 0.0, chosen.engines.mismatch, kinds)

    signal = folded(chosen, batch, old)

    assert (MismatchDecision.CORRECT, f"terms has {band['kind']}") == (
        record.decision,
        record.reason,
    )
    masks = [
        set(row[mask].tolist())
        for row, mask in zip(signal.weights_NT, batch.tokens.response_NT, strict=True)
    ]
    assert [{0.0}, {1.0}] == masks
    assert 0.5 == signal.metrics["correction/outside_geometric_band"]


STALE = {"kind": "stale", "above_nats": 0.5}


def test_a_stale_response_below_its_group_is_left_out_and_still_counted(settings, batch):
    old = old_scores(batch)
    chosen = grpo(settings, STALE, clip_low=0.9)  # ratio 0.55 is not clipped
    columns = objective.loss_columns(old, folded(chosen, batch))
    training = replace(batch.tokens, experts_NTLK=None, columns=columns)
    fallen_NT = old.logprobs_NT - 0.6 * batch.tokens.response_NT

    def value_and_slope(loss):
        mine_NT = fallen_NT.clone().requires_grad_()
        value, counts = loss_of(loss, 2)(mine_NT, training)
        value.backward()
        return mine_NT.grad.abs().sum(dim=1), counts

    slope_N, counts = value_and_slope(chosen)
    plain_N, _ = value_and_slope(grpo(settings, clip_low=0.9))

    (right,) = (batch.advantages_N > 0).nonzero()[:, 0].tolist()
    assert 0.0 == slope_N[1 - right] < plain_N[1 - right]
    assert plain_N[right] == slope_N[right] > 0.0  # the divisor is that of both responses
    assert 0.5 == counts["stale_share"]


def test_what_the_policy_has_left_before_the_step_is_booked_as_masked(settings, batch):
    chosen, response_NT = grpo(settings, STALE), batch.tokens.response_NT
    advantages_NT = batch.advantages_N[:, None] * response_NT

    def masked(gap):
        signal = folded(chosen, batch, old_scores(batch, -gap))
        return lost_tokens(signal, batch.tokens.alone_NT)[TokenUse.MASKED]

    assert not bool(masked(0.4).any())
    assert torch.equal(response_NT & (advantages_NT < 0), masked(0.6))


def training_batch(settings, batch, advantage, reference_NT=None):
    advantages_NT = advantage * batch.tokens.response_NT
    signal = folded(settings, batch, advantages_NT=advantages_NT, reference_NT=reference_NT)
    columns = objective.loss_columns(old_scores(batch), signal)
    return replace(batch.tokens, experts_NTLK=None, columns=columns)


def test_a_term_that_is_not_listed_costs_no_column(settings, batch):
    """Nor a pass, nor a metric, nor a use."""
    old = old_scores(batch)
    plain, with_kl = (folded(grpo(settings, *terms), batch) for terms in ([], [{"kind": "kl"}]))
    without = objective.loss_columns(old, plain)

    assert {"reference_logprobs"} == objective.loss_columns(old, with_kl).keys() - without.keys()
    assert {"old_logprobs", "advantages", "groups", "weights", "clip_low", "clip_high"} == set(
        without
    )
    assert ({}, {}) == (plain.metrics, plain.uses)


def test_before_the_first_update_the_loss_is_minus_the_mean_advantage(settings, batch):
    chosen, old = grpo(settings), old_scores(batch)
    tokens = training_batch(chosen, batch, 0.75)
    value, counts = loss_of(chosen, 2.0)(old.logprobs_NT, tokens)

    assert -0.75 == pytest.approx(float(value))
    assert {"clipped_tokens": 0.0, "tokens": 8.0} == counts


@pytest.mark.parametrize(("advantage", "bound"), [(1.0, 1.3), (-1.0, 1.5)])
def test_a_ratio_is_cut_only_where_that_lowers_the_objective(settings, batch, advantage, bound):
    chosen, old = grpo(settings, clip_low=0.2, clip_high=0.3), old_scores(batch)
    tokens = training_batch(chosen, batch, advantage)
    moved_NT = old.logprobs_NT + math.log(1.5) * batch.tokens.response_NT
    value, counts = loss_of(chosen, 2.0)(moved_NT, tokens)

    assert -advantage * bound == pytest.approx(float(value), rel=1e-5)
    assert (8.0 if advantage > 0 else 0.0) == counts["clipped_tokens"]


def test_a_token_that_kl_cov_holds_pays_for_every_nat_that_it_moves(settings, batch):
    chosen = grpo(settings, {"kind": f"{LAB}kl_cov.py:KLCov"}, clip_high=0.3)
    old, tokens = old_scores(batch), training_batch(chosen, batch, 1.0)
    held_NT = torch.zeros_like(tokens.response_NT)
    held_NT[0, int(tokens.response_NT[0].nonzero()[0])] = True
    held = replace(tokens, columns={**tokens.columns, "held": held_NT})
    plain, loss = (loss_of(one, 2.0) for one in (grpo(settings, clip_high=0.3), chosen))
    moved_NT = old.logprobs_NT + math.log(1.5) * batch.tokens.response_NT

    assert float(plain(old.logprobs_NT, tokens)[0]) == float(loss(old.logprobs_NT, held)[0])
    # Two responses of four tokens: one of eight pays.
    paid = math.log(1.5) / 8
    assert -1.3 + paid == pytest.approx(float(loss(moved_NT, held)[0]), rel=1e-5)


def test_what_clip_cov_draws_is_booked_as_masked(settings, batch):
    chosen, old = (
        grpo(settings, {"kind": f"{LAB}clip_cov.py:ClipCov", "share": 0.25}),
        old_scores(batch),
    )
    shape = batch.tokens.response_NT.shape
    advantages_NT = torch.tensor([[2.0], [-2.0]]).expand(shape) * batch.tokens.response_NT
    near = replace(old, logprobs_NT=advantages_NT.clone())
    signal = folded(chosen, batch, near, advantages_NT=advantages_NT)
    lost = lost_tokens(signal, batch.tokens.alone_NT)

    assert {} == signal.held
    assert 2 == int((signal.weights_NT == 0).sum()) == int(lost[TokenUse.MASKED].sum())


def test_losses_of_micro_batches_add_up_to_that_of_the_update(settings, batch):
    chosen, old = grpo(settings), old_scores(batch)
    tokens = training_batch(chosen, batch, 0.5)
    loss = loss_of(chosen, 2.0)
    whole, counts = loss(old.logprobs_NT, tokens)
    parts = [
        loss(old.logprobs_NT[row : row + 1], tokens.select(torch.tensor([row]))) for row in (0, 1)
    ]

    assert float(whole) == pytest.approx(sum(float(value) for value, _ in parts))
    assert counts["tokens"] == sum(part["tokens"] for _, part in parts)


def test_the_drift_from_the_start_model_costs_beta_times_k3(settings, batch):
    chosen = grpo(settings, {"kind": "kl", "weight": 0.1})
    old = old_scores(batch)
    away_NT = old.logprobs_NT - math.log(2) * batch.tokens.response_NT
    # The start model finds every token half as likely: k3 = 1/2 - 1 - ln(1/2).
    k3 = 0.5 - 1.0 + math.log(2)
    tokens = training_batch(chosen, batch, 0.0, away_NT)
    value, counts = loss_of(chosen, 2.0)(old.logprobs_NT, tokens)

    assert k3 == pytest.approx(counts["kl"], rel=1e-5)
    assert 0.1 * k3 == pytest.approx(float(value), rel=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"terms": [{"kind": "tis"}]}, "'tis' would see a ratio of 1"),
        ({"loss": {"kind": "espo"}}, "'espo' needs the entropies of that pass"),
        ({"terms": [{"kind": "rl_zvp"}]}, "'rl_zvp' needs the entropies of that pass"),
        ({"router_replay": "r2"}, "'r2' needs the routes"),
    ],
)
def test_what_needs_the_pass_that_recorded_log_probs_replace_is_refused(change, message):
    mismatch = {"old_policy": "rollout"}
    given = {
        "domains": {"maths": 1.0},
        "loss": {"kind": "dapo"},
        "terms": [],
        "engines": {"mismatch": mismatch},
    }
    with pytest.raises((ValueError, SettingsError), match=message):
        require_fit(RLSettings.model_validate(given | change))
    assert not RLSettings.model_validate(
        given | {"engines": {"mismatch": {"old_policy": "rollout"}}}
    ).recomputes


@pytest.mark.parametrize("kind", ["espo", "grpo", "gspo", "cispo", "sapo", "gmpo", "dapo"])
def test_a_weight_of_two_is_the_prompt_twice_penalty_and_all(settings, entry, kind):
    """With one response's length, so that no plan depends on how often a group is there."""
    changed = settings.model_copy(
        update={
            # Relative widths of ESPO depend on the mean entropy of the step; those of eq. 8 do not.
            "loss": LossSettings.model_validate(
                {"kind": kind} | ({"clip_scale": 0.02} if kind == "espo" else {})
            ),
            "terms": terms_of({"kind": "kl", "weight": 0.5}),
        }
    )
    weighed = [entry([1.0, 0.0], kept=KeptPrompt(0.5, 2.0)), entry([0.0, 1.0], number=1)]
    twice = [entry([1.0, 0.0]), entry([1.0, 0.0]), entry([0.0, 1.0], number=1)]
    means = []
    for groups, copies in ((weighed, (1, 1)), (twice, (2, 1))):
        batch = build(changed, groups)
        numbers = [number for number, count in enumerate(copies) for _ in range(2 * count)]
        place_NT = torch.arange(batch.tokens.tokens_NT.shape[1])[None] * 0.05
        old_NT = (-1.0 - torch.tensor(numbers)[:, None] - place_NT) * batch.tokens.response_NT
        old = TokenScores(old_NT, old_NT.abs(), None)
        rows = objective.split(changed, len(batch.owners), 1)
        signal = objective.first_signal(
            changed,
            batch,
            (old, old),
            rows,
            vocabulary=9,
            step=1,
            reference_NT=old_NT - 0.3,
        )
        signal = fold_step(find_terms(changed.terms), signal)
        columns = objective.weigh_prompts(objective.loss_columns(old, signal), batch)
        loss = objective.policy_loss(changed, 1.0, changed.terms)
        value, _ = loss((old_NT + 0.1).requires_grad_(), replace(batch.tokens, columns=columns))
        means.append(float(value.detach()))

    assert means[1] == pytest.approx(means[0], rel=1e-5)
    assert means[0] != 0.0
