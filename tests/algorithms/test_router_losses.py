import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

from data_schemas.routing import Routing
from tasks.algorithms.router_losses import balance_loss, expert_loads, z_loss

VECTOR = json.loads((Path(__file__).parent / "loss_vectors.json").read_text())["router_losses"]
LOGITS = torch.tensor(VECTOR["logits"], dtype=torch.float64)
ONES = torch.ones(3)
OF_SIX, OF_FOUR = Routing(6, 2), Routing(4, 2)


def test_both_give_the_worked_numbers():
    # The vector breaks the tie of its uniform token towards the lower ids.
    loads = torch.tensor(VECTOR["count"])

    assert VECTOR["z_loss"] == pytest.approx(float(z_loss(LOGITS, ONES, 3)))
    assert VECTOR["balance_loss"] == pytest.approx(
        float(balance_loss(LOGITS, ONES, loads.float(), 3, OF_FOUR)), abs=1e-6
    )


def test_a_uniform_router_has_balance_one():
    logits = torch.zeros(8, 4)
    loads = torch.full((4,), 4.0)

    assert 1.0 == pytest.approx(float(balance_loss(logits, torch.ones(8), loads, 8, OF_FOUR)))


@given(seed=st.integers(0, 1000))
def test_balance_agrees_with_transformers_switch_loss(seed):
    """Theirs counts per token and is k times larger."""
    logits = torch.randn(20, 6, generator=torch.Generator().manual_seed(seed))
    loads = expert_loads(logits, torch.ones(20), OF_SIX)

    expected = float(load_balancing_loss_func((logits,), 6, 2)) / 2

    assert expected == pytest.approx(float(balance_loss(logits, torch.ones(20), loads, 20, OF_SIX)))


@given(seed=st.integers(0, 1000), cut=st.integers(1, 19))
def test_parts_of_an_update_add_up_to_the_whole(seed, cut):
    logits = torch.randn(20, 6, generator=torch.Generator().manual_seed(seed))
    ones = torch.ones(20)
    loads = expert_loads(logits, ones, OF_SIX)
    parts = [slice(0, cut), slice(cut, 20)]

    for loss, extra in ((balance_loss, (loads, 20, OF_SIX)), (z_loss, (20,))):
        whole = float(loss(logits, ones, *extra))
        assert whole == pytest.approx(
            sum(float(loss(logits[part], ones[part], *extra)) for part in parts), rel=1e-5
        )


def test_a_row_that_stands_for_three_tokens_counts_three_times():
    logits = torch.randn(2, 6, generator=torch.Generator().manual_seed(0))
    once, thrice = torch.tensor([1.0, 3.0]), torch.ones(4)
    repeated = logits[[0, 1, 1, 1]]
    loads = expert_loads(logits, once, OF_SIX)

    assert expert_loads(repeated, thrice, OF_SIX).tolist() == loads.tolist()
    assert torch.allclose(z_loss(logits, once, 4), z_loss(repeated, thrice, 4))
    assert torch.allclose(
        balance_loss(logits, once, loads, 4, OF_SIX),
        balance_loss(repeated, thrice, loads, 4, OF_SIX),
    )


def test_gradients_agree_with_finite_differences():
    logits = LOGITS.clone().requires_grad_()
    loads = expert_loads(LOGITS, ONES, OF_FOUR)

    # Both compute in float32.
    for loss, extra in ((balance_loss, (loads, 3, OF_FOUR)), (z_loss, (3,))):
        (gradient,) = torch.autograd.grad(loss(logits, ONES, *extra), logits)
        step = torch.zeros_like(LOGITS)
        step[0, 2] = 1e-2
        slope = loss(LOGITS + step, ONES, *extra) - loss(LOGITS - step, ONES, *extra)
        assert float(slope) / 2e-2 == pytest.approx(float(gradient[0, 2]), abs=1e-3)
