"""Adjugate experts against numbers worked by hand and a loop over tokens."""

import json
from itertools import combinations
from pathlib import Path

import pytest
import torch
from torch.nn.functional import silu

from tasks.algorithms.expert_products import grouped, through_experts
from tasks.lab.recipes.grove_moe.family import adjugates_per_token
from tasks.lab.recipes.grove_moe.formulas import summed_by_group

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
LAYER = VECTORS["layer"]


def test_the_layer_of_the_worked_example():
    experts_MK = torch.tensor([[0, 1, 2]])
    gates_MK = torch.tensor([[LAYER["gates"][str(expert)] for expert in range(3)]])
    x_MH = torch.tensor([LAYER["x"]])
    matrices = {
        part: torch.tensor([LAYER["adjugate"][str(group)][part] for group in range(2)])
        for part in ("gate", "up", "down")
    }
    gate_up = torch.cat([matrices["gate"], matrices["up"]], dim=1)
    # Rows of a grouped product are multiples of 16 bytes: zeros change nothing.
    x_MH = torch.nn.functional.pad(x_MH, (0, 2))
    gate_up = torch.nn.functional.pad(gate_up.unflatten(1, (2, 1)), (0, 2, 0, 3)).flatten(1, 2)
    down = torch.nn.functional.pad(matrices["down"], (0, 3, 0, 2))

    groups_MK, weights_MK = summed_by_group(experts_MK, gates_MK, size=2, num_groups=2)
    adjugates_MH = through_experts(
        x_MH,
        weights_MK,
        groups_MK,
        2,
        gate_up=lambda rows, ends: grouped(rows, gate_up, ends),
        down=lambda rows, ends: grouped(rows, down, ends),
        skips=True,
    )
    plain = sum(
        LAYER["gates"][name] * torch.tensor(said) for name, said in LAYER["expert_out"].items()
    )

    assert [[0, 2, 1]] == groups_MK.tolist()
    assert LAYER["adjugates_run"] == int((groups_MK < 2).sum())
    y = plain + LAYER["scale"] * adjugates_MH[0, :2]
    assert LAYER["y"] == pytest.approx(y.tolist(), abs=2e-6)
    assert LAYER["y_with_zero_down"] == pytest.approx(plain.tolist())


def test_every_token_has_the_adjugates_of_its_experts_once_with_their_summed_gates():
    generator = torch.Generator().manual_seed(0)
    hidden_MH = torch.randn(40, 16, generator=generator)
    gates_MK = torch.rand(40, 3, generator=generator)
    experts_MK = torch.stack([torch.randperm(8, generator=generator)[:3] for _ in range(40)])
    gate_up = torch.randn(4, 16, 16, generator=generator)
    down = torch.randn(4, 16, 8, generator=generator)
    rows = []

    def project_in(rows_SI, ends_E):
        rows.append(len(rows_SI))
        return grouped(rows_SI, gate_up, ends_E)

    groups_MK, weights_MK = summed_by_group(experts_MK, gates_MK, size=2, num_groups=4)
    found_MH = through_experts(
        hidden_MH,
        weights_MK,
        groups_MK,
        4,
        gate_up=project_in,
        down=lambda rows, ends: grouped(rows, down, ends),
        skips=True,
    )
    expected_MH = torch.zeros(40, 16)
    for token in range(40):
        for expert, gate in zip(experts_MK[token].tolist(), gates_MK[token], strict=True):
            inner = gate_up[expert // 2] @ hidden_MH[token]
            said = down[expert // 2] @ (silu(inner[:8]) * inner[8:])
            expected_MH[token] += gate * said

    torch.testing.assert_close(found_MH, expected_MH, rtol=1e-4, atol=1e-4)
    assert [sum(len({e // 2 for e in row}) for row in experts_MK.tolist())] == rows


def test_gates_are_summed_with_their_gradient():
    gates_MK = torch.tensor([[0.5, 0.3, 0.2]], requires_grad=True)
    _, weights_MK = summed_by_group(torch.tensor([[4, 0, 5]]), gates_MK, size=2, num_groups=3)
    weights_MK[0, 0].backward()

    assert [0.7, 0.3, 0.0] == pytest.approx(weights_MK[0].tolist())
    assert [[1.0, 0.0, 1.0]] == gates_MK.grad.tolist()


@pytest.mark.parametrize("size", VECTORS["sizes"], ids=lambda size: size["name"])
def test_uniform_routers_use_this_many_adjugates(size):
    used = adjugates_per_token(size["experts"], size["groups"], size["top_k"])

    assert size["expected_uniform"] == pytest.approx(used, abs=2e-6)
    assert size["fewest"] <= used <= size["most"]


def test_the_expected_number_is_the_mean_over_all_choices():
    choices = list(combinations(range(8), 3))
    mean = sum(len({expert // 2 for expert in one}) for one in choices) / len(choices)

    assert mean == pytest.approx(adjugates_per_token(8, 4, 3))
    assert 0.0 == adjugates_per_token(8, 0, 3)
