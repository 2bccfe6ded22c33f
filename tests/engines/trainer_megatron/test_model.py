"""Megatron's logits are those of transformers, however the model is divided."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.expert_names import split_experts
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.layouts import LAYOUTS, processes
from tests.engines.trainer_megatron.model_ranks import find, gradients, refusal_on_a_gpu
from tests.engines.trainer_megatron.small_models import expected_logits, open_model, packed_loss

pytestmark = pytest.mark.engines

BASE_MODEL = Path("tasks/training/foundation/base_model").absolute()


@pytest.fixture(scope="module")
def expected(small_models) -> dict[str, torch.Tensor]:
    return {name: expected_logits(folder) for name, folder in small_models.items()}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_packed_logits_are_those_of_transformers_one_by_one(world, layout, expected):
    found = world(layout)

    for name in found.sources:
        logits = [rank[name].logits_MV for rank in found.ranks]
        held = [one for one in logits if one is not None]
        assert len(held) * layout.pipeline == len(logits)
        for logits_MV in held:
            assert (expected[name] - logits_MV).abs().max() <= 1e-5, name


def test_probabilities_that_are_not_renormalised_give_other_logits(expected):
    # The two share every weight: equal logits would mean that the setting is lost on both sides.
    renormalised, plain = expected["moe"], expected["moe_not_renormalised"]

    assert (renormalised - plain).abs().max() > 0.01


def test_the_shipped_base_model_is_the_same_model(tmp_path):
    (rank,) = run_world(find, 1, {"base": BASE_MODEL}, LayoutSettings(), tmp_path)
    expected_MV = expected_logits(BASE_MODEL).log_softmax(dim=1)

    logprobs_MV = rank["base"].logits_MV.log_softmax(dim=1)
    # Some are 20 nats: 1e-5 is five roundings of such a number.
    torch.testing.assert_close(expected_MV, logprobs_MV, atol=2e-5, rtol=0.0)


@pytest.mark.parametrize(
    "layout",
    [LayoutSettings(), LayoutSettings(recompute=True), LayoutSettings(context=2)],
    ids=["kept", "recomputed", "context over 2"],
)
def test_gradients_are_those_of_transformers(small_models, layout):
    first, *_ = run_world(gradients, processes(layout), small_models, layout)
    for name, found in first.items():
        model = open_model(small_models[name])
        packed_loss(model).backward()

        wanted = {name: parameter.grad for name, parameter in model.named_parameters()}
        compared = set()
        for name, gradient in wanted.items():
            assert gradient.abs().max() > 1e-5, name
            for part, theirs in split_experts(name, gradient):
                assert (theirs - found[part]).abs().max() <= 1e-6, part
                compared.add(part)
        assert compared == found.keys()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_ranks_share_what_their_layout_divides(world, layout):
    held = [rank["moe"].held for rank in world(layout).ranks]
    whole = world(LayoutSettings()).ranks[0]["moe"].held

    # Norms and routers are on every rank; all else must not be.
    is_divided = layout.tensor * layout.pipeline * layout.expert > 1
    assert max(held) <= whole * (0.8 if is_divided else 1.0)
    assert sum(held) >= whole


def test_bf16_is_transformers_in_bf16(small_models, tmp_path):
    layout = LayoutSettings(precision=Precision.BF16, expert=2, tensor=2)
    sources = {"moe": small_models["moe"]}
    ranks = run_world(find, 2, sources, layout, tmp_path)
    whole = expected_logits(small_models["moe"])

    for rank in ranks:
        logits_MV = rank["moe"].logits_MV
        assert torch.bfloat16 == logits_MV.dtype
        assert (logits_MV.float() - whole).abs().mean() < 0.02 * whole.std()


def test_fp32_on_a_gpu_is_refused_by_name():
    # Transformer Engine has no attention of packed sequences in fp32, and fp32 is the default.
    (said,) = run_world(refusal_on_a_gpu, 1, BASE_MODEL, LayoutSettings())

    assert "engines.layout.precision is 'fp32'" in said
    assert "set it to 'bf16'" in said
