import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import espo, surrogate, table
from tasks.algorithms.losses.surrogate import RatioMode, TokenPlan, clipped_objective
from tasks.algorithms.terms.token_budget import TokenBudget
from tests.algorithms.signals import signal_of

VECTOR = json.loads((Path(__file__).parent / "vectors.json").read_text())["espo"]
GAP = torch.tensor([VECTOR["inputs"]["logratio"]], dtype=torch.float64)
ENTROPY = torch.tensor([VECTOR["inputs"]["entropy"]], dtype=torch.float64)
ALL = torch.ones_like(GAP, dtype=torch.bool)
GSPO_TOKEN = RatioMode.GSPO_TOKEN


def espo_plan(entropy=ENTROPY, mask=ALL, *, share=0.4, edges=(), **changes):
    chosen = {"high_entropy_share": share, "entropy_edges": edges, "clip_scale": 0.1} | changes
    vocabulary = chosen.pop("vocabulary", 8)
    return table.plan(LossSettings(**chosen), entropy, mask, vocabulary=vocabulary)


def clip_plan(kind, mask, low, high):
    settings = LossSettings(kind=kind, clip_low=low, clip_high=high)
    return table.plan(settings, torch.zeros(mask.shape), mask, vocabulary=8)


def objective_and_gradient(plan: TokenPlan, gap, advantage, mode=GSPO_TOKEN):
    logprobs = gap.clone().requires_grad_()
    old = torch.zeros_like(gap)
    objective, clipped = clipped_objective(
        logprobs, old, advantage * torch.ones_like(gap), plan, ratio_mode=mode
    )
    objective.sum().backward()
    return objective.detach(), logprobs.grad, clipped


@pytest.mark.parametrize("case", VECTOR["cases"], ids=lambda c: f"{c['mode']} A={c['advantage']}")
def test_espo_gives_the_worked_numbers(case):
    expected = case["expected"]
    plan = espo_plan()

    objective, gradient, clipped = objective_and_gradient(
        plan, GAP, case["advantage"], RatioMode(case["mode"])
    )

    assert expected["high_mask"] == (plan.groups_NT[0] == espo.HIGH).tolist()
    assert expected["clip_eps"] == pytest.approx(plan.clip_high_NT[0].tolist())
    assert expected["token_weight"] == pytest.approx(plan.weights_NT[0].tolist())
    assert expected["objective"] == pytest.approx(float(objective))
    assert expected["dobj_dlogp"] == pytest.approx(gradient[0].tolist())
    assert expected["clipped"] == clipped[0].tolist()


def test_gspo_and_grpo_give_the_contrast_numbers():
    contrast = VECTOR["gspo_contrast"]["objective_A1"]
    gspo_objective, _, _ = objective_and_gradient(clip_plan("gspo", ALL, 3e-4, 4e-4), GAP, 1.0)
    grpo_objective, _, _ = objective_and_gradient(clip_plan("grpo", ALL, 0.2, 0.28), GAP, 1.0)

    assert contrast == pytest.approx(float(gspo_objective), abs=1e-7)
    assert VECTOR["grpo_contrast_clip_02_028"]["objective_A1"] == pytest.approx(
        float(grpo_objective), abs=1e-7
    )


@pytest.mark.parametrize("row", VECTOR["eps_at_alpha_0_02_vocab_151936"], ids=str)
def test_the_clip_range_has_the_papers_scale_at_full_vocabulary(row):
    entropy = torch.full((1, 10), row["mean_entropy_nats"], dtype=torch.float64)

    plan = espo_plan(
        entropy, torch.ones(1, 10, dtype=torch.bool), vocabulary=151936, clip_scale=0.02
    )

    assert row["eps"] == pytest.approx(float(plan.clip_low_NT[0, 0]))


def test_relative_widths_give_the_worked_numbers():
    # Groups of 2 and 3 tokens; mean entropies 1.4 and 0.35 / 3, of the step 0.63.
    plan = espo_plan(clip_scale=0.0, clip_low=0.2, clip_high=0.3)

    high, low = 1.4 / 0.63 / math.sqrt(2), 0.35 / 3 / 0.63 / math.sqrt(3)
    expected = [high, low, low, high, low]
    assert [0.2 * width for width in expected] == pytest.approx(plan.clip_low_NT[0].tolist())
    assert [0.3 * width for width in expected] == pytest.approx(plan.clip_high_NT[0].tolist())
    assert (0.314270, 0.021383) == pytest.approx((0.2 * high, 0.2 * low), rel=1e-4)


@pytest.mark.parametrize("vocabulary", [2, 768, 151_936])
@pytest.mark.parametrize("level", [0.05, 1.0, 20.0])
def test_relative_widths_depend_neither_on_the_vocabulary_nor_on_the_level_of_entropy(
    vocabulary, level
):
    expected = espo_plan(clip_scale=0.0)

    plan = espo_plan(level * ENTROPY, clip_scale=0.0, vocabulary=vocabulary)

    assert torch.equal(expected.groups_NT, plan.groups_NT)
    assert torch.allclose(expected.clip_low_NT, plan.clip_low_NT)
    assert torch.allclose(expected.clip_high_NT, plan.clip_high_NT)


def test_relative_widths_of_a_group_four_times_as_long_are_half_as_wide():
    short, long = (
        espo_plan(torch.full((1, num), 0.7), torch.ones(1, num, dtype=torch.bool), clip_scale=0.0)
        for num in (25, 100)
    )

    assert 0.2 / 5 == pytest.approx(float(short.clip_low_NT[0, 0]))
    assert 0.2 / 10 == pytest.approx(float(long.clip_low_NT[0, 0]))


@pytest.mark.parametrize("length", [1, 16, 256])
def test_relative_widths_clip_the_same_share_of_independent_tokens_at_every_length(length):
    """As many groups are clipped as GRPO clips tokens, where eq. 8 clips more the shorter."""
    draws = torch.Generator().manual_seed(length)
    gap = 0.01 * torch.randn(4096, length, generator=draws)
    entropy, mask = torch.full_like(gap, 0.3), torch.ones_like(gap, dtype=torch.bool)
    plan = espo_plan(entropy, mask, clip_scale=0.0, clip_low=0.01, clip_high=0.01)

    _, _, clipped = objective_and_gradient(plan, gap, 1.0)

    # Deviation and width are both 0.01: one tail of a normal distribution, beyond one deviation.
    assert 0.159 == pytest.approx(float(clipped[:, 0].float().mean()), abs=0.02)


def test_relative_widths_of_one_token_per_group_are_those_of_grpo():
    entropy = torch.full((1, 1), 0.4, dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.bool)
    plan, other = (
        espo_plan(entropy, one, clip_scale=0.0, clip_high=0.28),
        clip_plan("grpo", one, 0.2, 0.28),
    )

    assert torch.allclose(other.clip_low_NT, plan.clip_low_NT.float())
    assert torch.allclose(other.clip_high_NT, plan.clip_high_NT.float())


def test_a_group_of_high_entropy_in_a_calm_step_still_clips_a_ratio_that_collapses():
    # Five responses of five tokens; all have 0.02 nats but one, which has 2 and is a group alone.
    entropy = torch.full((5, 5), 0.02, dtype=torch.float64)
    entropy[0, 4] = 2.0
    mask = torch.ones(5, 5, dtype=torch.bool)
    plan = espo_plan(entropy, mask, share=0.2, clip_scale=0.0)

    # Mean of the step (2 + 24 * 0.02) / 25 = 0.0992: 0.2 * 2 / 0.0992 = 4.03 without a bound.
    low, high = plan.clip_low_NT[0].tolist(), plan.clip_high_NT[0].tolist()
    assert [0.2 * 0.02 / 0.0992 / 2] * 4 + [0.9] == pytest.approx(low)
    assert low == high
    gap = torch.zeros(5, 5, dtype=torch.float64)
    gap[0, 4] = math.log(0.05)
    objective, gradient, clipped = objective_and_gradient(plan, gap, -1.0)

    # Half of the response's weight is the group's; its ratio counts as 0.1, the lower bound.
    assert -(0.5 + 0.5 * 0.1) == pytest.approx(float(objective[0]))
    assert (0.0, True) == (float(gradient[0, 4]), bool(clipped[0, 4]))


@pytest.mark.parametrize("asked", [0.95, 1.5])
def test_a_clip_range_or_floor_beyond_the_bound_is_what_was_asked_for(asked):
    # The high group's share of a range is 2.2 / sqrt(2) = 1.57, the low one's 0.11.
    plan = espo_plan(clip_scale=0.0, clip_low=asked, clip_high=0.2, clip_floor=0.0)
    raised = espo_plan(clip_scale=0.0, clip_floor=asked)

    assert asked == pytest.approx(float(plan.clip_low_NT[0, 0]))
    assert [asked] * 5 == pytest.approx(raised.clip_low_NT[0].tolist())


def test_a_step_without_entropy_has_widths_of_zero_or_of_the_floor():
    nothing, floor = (
        espo_plan(0.0 * ENTROPY, clip_scale=0.0, clip_floor=floor) for floor in (0.0, 0.01)
    )

    assert [0.0] * 5 == nothing.clip_low_NT[0].tolist()
    assert [0.01] * 5 == pytest.approx(floor.clip_high_NT[0].tolist())


def test_equal_entropies_make_espo_gspo_with_one_group():
    entropy = torch.full_like(GAP, 0.7)
    plan = espo_plan(entropy)
    width = float(plan.clip_low_NT[0, 0])

    one = objective_and_gradient(plan, GAP, 1.0)
    other = objective_and_gradient(clip_plan("gspo", ALL, width, width), GAP, 1.0)

    assert torch.allclose(one[0], other[0].double(), atol=1e-7)
    assert torch.allclose(one[1], other[1].double(), atol=1e-7)


def test_one_token_per_group_gives_grpo_ratios():
    gap = torch.randn(3, 6, dtype=torch.float64) * 0.1
    plan = clip_plan("grpo", torch.ones(3, 6, dtype=torch.bool), 10.0, 10.0)

    objective, gradient, _ = objective_and_gradient(plan, gap, 1.0)

    assert torch.allclose(gap.exp().mean(dim=1), objective, atol=1e-6)
    assert torch.allclose(gap.exp() / 6, gradient, atol=1e-6)


def of_loss(settings, plan, gap, advantage):
    """Objective, gradient and clipped tokens of a loss, whatever its family."""
    logprobs, old = gap.clone().requires_grad_(), torch.zeros_like(gap)
    advantages = advantage * torch.ones_like(gap)
    objective, clipped = table.find(settings).objective(logprobs, old, advantages, plan)
    objective.sum().backward()
    return objective.detach(), logprobs.grad, clipped


@pytest.mark.parametrize("kind", list(table.LOSSES))
def test_on_policy_nothing_is_clipped_and_the_gradient_is_weight_times_advantage(kind):
    entropy, mask = torch.rand(4, 9), torch.arange(9) < torch.tensor([[9], [5], [1], [2]])
    plan = table.plan(LossSettings(kind=kind), entropy, mask, vocabulary=512)

    _, gradient, clipped = of_loss(LossSettings(kind=kind), plan, torch.zeros(4, 9), -1.5)

    assert not clipped.any()
    assert torch.allclose(-1.5 * plan.weights_NT, gradient)


VARIANTS = [
    *(LossSettings(kind=kind) for kind in table.LOSSES),
    LossSettings(entropy_edges=(0.2, 0.5)),
    LossSettings(ratio=RatioMode.LITERAL_EQ9, drop_low=True),
]
BUDGETS = [
    (LossSettings(kind="grpo"), TokenBudget(tokens_per_response=7 / 3)),
    (LossSettings(), TokenBudget(tokens_per_response=7 / 3, truncate_last=False)),
]
"""A loss, cut to a budget of tokens."""
CASES = [*((one, None) for one in VARIANTS), *BUDGETS]


def name_of(settings: BaseModel | None) -> str:
    changed = {} if settings is None else settings.model_dump(mode="json", exclude_defaults=True)
    return " ".join(f"{key}={value}" for key, value in changed.items()) or "defaults"


def plan_of(settings, term, entropy, mask):
    plan = table.plan(settings, entropy, mask, vocabulary=64)
    return plan if term is None else term.weigh(signal_of(mask, plan=plan)).plan


def planned(settings, term, entropy, mask, gap):
    return of_loss(settings, plan_of(settings, term, entropy, mask), gap, 1.0)


@pytest.mark.parametrize(("settings", "term"), CASES, ids=name_of)
@given(seed=st.integers(0, 10_000), extra=st.integers(1, 7))
def test_padding_never_changes_anything(settings, term, seed, extra):
    generator = torch.Generator().manual_seed(seed)
    entropy = torch.rand(3, 8, generator=generator)
    gap = torch.randn(3, 8, generator=generator) * 0.3
    mask = torch.arange(8) < torch.tensor([[8], [3], [1]])
    wide = [torch.nn.functional.pad(tensor, (0, extra), value=9.9) for tensor in (entropy, gap)]
    wide_mask = torch.nn.functional.pad(mask, (0, extra))

    short = planned(settings, term, entropy, mask, gap)
    padded = planned(settings, term, wide[0], wide_mask, wide[1])

    assert torch.allclose(short[0], padded[0], atol=1e-6)
    assert torch.allclose(short[1], padded[1][:, :8], atol=1e-6)
    assert not padded[1][:, 8:].any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "term"),
    [case for case in CASES if case != BUDGETS[0]],  # which cuts by place
    ids=name_of,
)
@given(seed=st.integers(0, 10_000))
def test_permuting_tokens_permutes_the_gradient(settings, term, seed):
    generator = torch.Generator().manual_seed(seed)
    entropy, gap = torch.rand(2, 7, generator=generator), torch.randn(2, 7, generator=generator)
    order = torch.randperm(7, generator=generator)
    mask = torch.ones(2, 7, dtype=torch.bool)

    _, straight, _ = planned(settings, term, entropy, mask, gap)
    _, permuted, _ = planned(settings, term, entropy[:, order], mask, gap[:, order])

    assert torch.allclose(straight[:, order], permuted, atol=1e-6)


OF_SURROGATE = [case for case in CASES if isinstance(table.find(case[0]), surrogate.ClippedLoss)]


@pytest.mark.parametrize(("settings", "term"), OF_SURROGATE, ids=name_of)
def test_gradients_of_every_clipped_loss_agree_with_finite_differences(settings, term):
    """Moved is the token's own log-probability; group ratios are constants by definition."""
    generator = torch.Generator().manual_seed(3)
    entropy = torch.rand(2, 6, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], dtype=torch.bool)
    gap = torch.randn(2, 6, generator=generator, dtype=torch.float64) * 0.1
    plan = plan_of(settings, term, entropy, mask)
    mode = table.find(settings).ratio_form
    _, gradient, clipped = objective_and_gradient(plan, gap, -1.0, mode)
    inside = plan.weights_NT > 0
    group = surrogate.group_means(gap, plan.groups_NT, inside)
    ratio = (group + gap if mode is RatioMode.LITERAL_EQ9 else group).exp()
    step = 1e-6
    for n, t in torch.nonzero(inside).tolist():
        kept = float(ratio[n, t].clamp(max=1 + plan.clip_high_NT[n, t]))
        if mode == surrogate.DETACHED:
            values = [kept * -(gap[n, t] + sign * step) for sign in (1, -1)]
        elif clipped[n, t]:
            values = [0.0, 0.0]
        else:
            values = [-ratio[n, t] * math.exp(sign * step) for sign in (1, -1)]
        slope = float(values[0] - values[1]) / (2 * step)
        expected = float(plan.weights_NT[n, t]) * slope
        assert expected == pytest.approx(float(gradient[n, t]), rel=1e-6)
    assert not gradient[~inside].any()


def test_entropies_on_an_edge_belong_above_it_and_ranges_weigh_the_same():
    entropy = torch.tensor([[0.1, 0.5, 0.6, 2.0, 0.2, 3.0]])
    plan = espo_plan(entropy, torch.ones(1, 6, dtype=torch.bool), edges=(0.5, 1.0))

    assert [0, 1, 1, 2, 0, 2] == plan.groups_NT[0].tolist()
    assert [1 / 6] * 6 == pytest.approx(plan.weights_NT[0].tolist())
    assert 0.1 * 2.5 / math.log(8) == pytest.approx(float(plan.clip_high_NT[0, 3]))


def test_one_range_for_all_entropies_is_gspo():
    plan = espo_plan(edges=(9.0,))
    width = float(plan.clip_low_NT[0, 0])

    one = objective_and_gradient(plan, GAP, -1.0)
    other = objective_and_gradient(clip_plan("gspo", ALL, width, width), GAP, -1.0)

    assert torch.allclose(one[0], other[0].double(), atol=1e-7)
    assert torch.allclose(one[1], other[1].double(), atol=1e-7)


def test_a_range_per_token_is_grpo():
    entropy = torch.tensor([[0.05, 0.15, 0.25, 0.35, 0.45]], dtype=torch.float64)
    plan = espo_plan(entropy, edges=(0.1, 0.2, 0.3, 0.4), clip_floor=0.2)

    one = objective_and_gradient(plan, GAP, 1.0)
    other = objective_and_gradient(clip_plan("grpo", ALL, 0.2, 0.2), GAP, 1.0)

    assert torch.allclose(one[0], other[0].double(), atol=1e-7)
    assert torch.allclose(one[1], other[1].double(), atol=1e-7)


def test_a_wider_upper_bound_lets_unlikely_right_tokens_grow_further():
    gap = torch.tensor([[math.log(1.25)]], dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.bool)
    tight, higher = (clip_plan("grpo", one, 0.2, high) for high in (0.2, 0.28))

    assert not objective_and_gradient(tight, gap, 1.0)[1].any()
    assert 1.25 == pytest.approx(float(objective_and_gradient(higher, gap, 1.0)[1]))


def test_means_over_the_batch_follow_their_definitions():
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)
    gap = torch.zeros(2, 4, dtype=torch.float64)
    advantage = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    step = table.StepTotals(4, 12, 8, (torch.arange(2),), seed=0, responses_per_update=4)

    def loss_of(kind):
        settings = LossSettings(kind=kind)
        plan = table.plan(settings, gap, mask, vocabulary=8, step=step)
        objective, _, _ = objective_and_gradient(plan, gap, advantage, GSPO_TOKEN)
        return float(objective.sum()) / step.num_sequences

    assert 0.0 == pytest.approx(loss_of("grpo"))  # (1 - 1) / 4
    assert (4 - 2) / 12 == pytest.approx(loss_of("dapo"))
    assert (4 - 2) / 8 / 4 == pytest.approx(loss_of("dr_grpo"))


def test_cispo_caps_the_weight_and_keeps_the_gradient():
    gap = torch.tensor([[math.log(3.0), math.log(0.01)]], dtype=torch.float64)
    both = torch.ones(1, 2, dtype=torch.bool)
    settings = LossSettings(kind="cispo", clip_high=0.5)

    _, gradient, clipped = planned(settings, None, gap, both, gap)

    assert [1.5 / 2, 0.01 / 2] == pytest.approx(gradient[0].tolist())
    assert [True, False] == clipped[0].tolist()


def test_every_sequence_weighs_one_and_groups_weigh_the_same():
    entropy = torch.tensor([[3.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]])
    plan = espo_plan(entropy, torch.ones(1, 10, dtype=torch.bool), share=0.1)

    assert 1.0 == pytest.approx(float(plan.weights_NT.sum()))
    assert 0.5 == pytest.approx(float(plan.weights_NT[0, 0]))


def test_drop_low_trains_the_high_group_only():
    plan = espo_plan(drop_low=True)

    assert [0.5, 0.0, 0.0, 0.5, 0.0] == plan.weights_NT[0].tolist()


def test_a_sequence_without_tokens_has_no_weight_and_no_nan():
    plan = espo_plan(mask=torch.zeros_like(ALL))

    objective, gradient, _ = objective_and_gradient(plan, GAP, 1.0)

    assert 0.0 == float(objective)
    assert not gradient.any()
