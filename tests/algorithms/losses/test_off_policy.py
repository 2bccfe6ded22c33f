"""SAPO, GMPO, LUSPO and DPPO against worked numbers, whose gradients are finite differences."""

import json
from pathlib import Path

import pytest
import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import table
from tasks.errors import SettingsError

VECTORS = json.loads((Path(__file__).parents[1] / "off_policy_vectors.json").read_text())["losses"]


def found(settings, new, old, advantages, mask=None):
    """Objective [N], gradient [N, T] and clipped tokens of rows that are the whole step."""
    new_NT = torch.tensor(new, dtype=torch.float64, requires_grad=True)
    old_NT = torch.tensor(old, dtype=torch.float64)
    mask_NT = torch.ones_like(old_NT, dtype=torch.bool) if mask is None else mask
    advantages_NT = torch.tensor(advantages, dtype=torch.float64)[:, None] * mask_NT
    plan = table.plan(settings, torch.zeros(mask_NT.shape), mask_NT, vocabulary=64)
    loss = table.find(settings)
    objective_N, clipped_NT = loss.objective(new_NT, old_NT, advantages_NT, plan)
    (gradient_NT,) = torch.autograd.grad(objective_N.sum(), new_NT)
    return objective_N.detach(), gradient_NT, clipped_NT


@pytest.mark.parametrize("advantage", [1, -1])
def test_sapo_gives_the_worked_numbers(advantage):
    expected = VECTORS["sapo"][f"A={advantage:+d}"]
    settings = LossSettings(kind="sapo")
    old, new = VECTORS["logprobs_old"], VECTORS["logprobs_new"]

    objective, gradient, clipped = found(settings, [new], [old], [advantage])
    at_old, gradient_at_old, _ = found(settings, [old], [old], [advantage])

    assert expected["objective"] == pytest.approx(float(objective), abs=2e-6)
    assert expected["gradient"] == pytest.approx(gradient[0].tolist(), abs=2e-6)
    assert expected["objective_on_policy"] == pytest.approx(float(at_old), abs=2e-6)
    assert expected["gradient_on_policy"] == pytest.approx(gradient_at_old[0].tolist(), abs=2e-6)
    assert not clipped.any()


@pytest.mark.parametrize("ratio", VECTORS["sapo"]["gate_weight_at_ratio"])
def test_sapos_gate_holds_a_likelier_token_more_than_a_rarer_one(ratio):
    settings = LossSettings(kind="sapo")
    gap = torch.tensor(float(ratio)).log().item()
    weights = []
    for advantage in (1.0, -1.0):
        _, gradient, _ = found(settings, [[gap]], [[0.0]], [advantage])
        weights.append(float(gradient) / float(ratio) / advantage)

    assert VECTORS["sapo"]["gate_weight_at_ratio"][ratio] == pytest.approx(weights, abs=2e-6)


@pytest.mark.parametrize("advantage", [1, -1])
def test_gmpo_gives_the_worked_numbers(advantage):
    vector = VECTORS["gmpo"]
    expected = vector[f"A={advantage:+d}"]
    width = vector["eps_log"]
    settings = LossSettings(kind="gmpo", clip_low=width, clip_high=width)

    objective, gradient, clipped = found(
        settings, [vector["logprobs_new"]], [VECTORS["logprobs_old"]], [advantage]
    )

    assert expected["objective"] == pytest.approx(float(objective), abs=2e-6)
    assert expected["gradient"] == pytest.approx(gradient[0].tolist(), abs=2e-6)
    assert expected["clipped"] == clipped[0].tolist()


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_token_that_a_mask_left_out_of_gmpo_has_no_gradient(advantage):
    settings = LossSettings(kind="gmpo", clip_low=0.4, clip_high=0.4)
    old, gap = torch.zeros(1, 4, dtype=torch.float64), [[0.1, -0.2, 0.3, 0.0]]
    mask_NT = torch.ones(1, 4, dtype=torch.bool)
    plan = table.plan(settings, torch.zeros(1, 4), mask_NT, vocabulary=64)
    new = torch.tensor(gap, dtype=torch.float64, requires_grad=True)
    advantages = advantage * torch.tensor([[1.0, 1.0, 0.0, 1.0]], dtype=torch.float64)

    objective, _ = table.find(settings).objective(new, old, advantages, plan)
    (gradient,) = torch.autograd.grad(objective.sum(), new)

    each = advantage * torch.tensor(0.2 / 4).exp().item()  # the mean is that of all four
    assert each == pytest.approx(objective.item(), abs=1e-7)
    assert [each / 4, each / 4, 0.0, each / 4] == pytest.approx(gradient[0].tolist(), abs=1e-7)


PUBLISHED = {
    "espo": (0.2, 0.2),
    "gspo": (3e-4, 4e-4),
    "grpo": (0.2, 0.2),
    "dr_grpo": (0.2, 0.2),
    "dapo": (0.2, 0.28),
    "cispo": (1.0, 0.28),
    "sapo": None,
    "gmpo": (0.4, 0.4),
    "luspo": (2e-3, 2.5e-3),
    "dppo": (0.2, 0.2),
    "dppo_kl": (0.05, 0.05),
}


def test_every_loss_begins_with_the_widths_of_its_paper():
    widths = {kind: table.find(LossSettings(kind=kind)).clip_range for kind in table.LOSSES}

    assert PUBLISHED == widths


def test_a_loss_refuses_the_settings_of_another_one_and_names_whose_they_are():
    with pytest.raises(SettingsError) as refusal:
        table.find(LossSettings(kind="sapo", drop_low=True))

    assert "loss.drop_low is not a setting" in str(refusal.value)
    assert "loss.kind is 'sapo', but of espo" in str(refusal.value)


def test_a_misspelt_setting_of_a_loss_is_refused_with_the_word_that_was_meant():
    with pytest.raises(SettingsError, match=r"loss\.clip_hi is not .* mean `clip_high`\?"):
        table.find(LossSettings(kind="grpo", clip_hi=0.28))


def test_luspo_gives_the_worked_numbers_divided_by_the_mean_length():
    vector = VECTORS["luspo"]
    low, high = vector["eps"]
    mask = torch.arange(4) < torch.tensor([[2], [4]])
    gap_N1 = torch.tensor(vector["sequence_ratios"], dtype=torch.float64).log()[:, None]
    gap = (gap_N1 * mask).tolist()
    zeros = torch.zeros(2, 4).tolist()

    for kind, scale, name in (("luspo", 3.0, ""), ("gspo", 1.0, "gspo_")):
        settings = LossSettings(kind=kind, clip_low=low, clip_high=high)
        objective, gradient, _ = found(settings, gap, zeros, [1.0, -1.0], mask)
        rows = [row[inside].tolist() for row, inside in zip(gradient, mask, strict=True)]

        # The vector's are means over the two sequences.
        assert vector[f"{name}objective"] == pytest.approx(
            scale * float(objective.sum()) / 2, abs=2e-6
        )
        for expected, row in zip(vector[f"{name}gradient"], rows, strict=True):
            assert expected == pytest.approx([scale * one / 2 for one in row], abs=2e-6)


@pytest.mark.parametrize("case", VECTORS["dppo"], ids=lambda c: f"{c['mu']} {c['pi']} {c['A']}")
def test_dppo_gives_the_worked_numbers(case):
    old, new = torch.tensor([case["mu"], case["pi"]], dtype=torch.float64).log().tolist()
    for kind, bound, keeps in (
        ("dppo", 0.2, case["keep_tv_0.2"]),
        ("dppo_kl", 0.05, case["keep_kl_0.05"]),
    ):
        settings = LossSettings(kind=kind, clip_low=bound, clip_high=bound)
        objective, gradient, dropped = found(settings, [[new]], [[old]], [case["A"]])

        assert keeps == (not dropped.any())
        if kind == "dppo":
            assert -case["prime_rl_loss"] == pytest.approx(float(objective), abs=2e-6)
            assert -case["prime_rl_grad_wrt_logprob"] == pytest.approx(float(gradient), abs=2e-6)


@pytest.mark.parametrize("kind", ["dppo", "dppo_kl"])
def test_a_token_that_had_all_mass_has_a_finite_distance(kind):
    settings = LossSettings(kind=kind)
    for new, old in ((0.0, 0.0), (-0.1, 0.0), (0.0, -0.1), (-60.0, -1e-9)):
        objective, gradient, _ = found(settings, [[new]], [[old]], [-1.0])

        assert torch.isfinite(objective).all()
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("kind", ["sapo", "gmpo", "luspo", "dppo"])
def test_without_an_advantage_or_a_token_there_is_nothing(kind):
    settings = LossSettings(kind=kind)
    mask = torch.tensor([[True, True], [False, False]])

    objective, gradient, clipped = found(
        settings, [[-1.0, -2.0], [-9.0, -9.0]], [[-1.0, -2.0], [-1.0, -1.0]], [0.0, 1.0], mask
    )

    assert [0.0, 0.0] == objective.tolist()
    assert not gradient.any()
    assert not clipped.any()
