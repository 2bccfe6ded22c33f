"""Weights rounded to int8, as weight-only quantisation serves them.

Every projection of attention, MLPs and experts is rounded to 255 levels, with one scale for all
inputs of an output: symmetric, the largest weight is the last level. Embeddings, output layer,
norms and routers stay as they are, as under vLLM's fp8. What is computed is fp32, as kernels that
read int8 weights compute in floats: so the numbers are those of int8, and the memory is not.
torch's own `quantize_dynamic` is deprecated, and it and torchao see `nn.Linear` only: the experts
of transformers are stacked tensors, which both would leave out.
"""

import torch
from torch import nn
from transformers import PreTrainedModel

from tasks.engines.embedded.router_replay import named_routers
from tasks.engines.expert_names import DOWN, GATE_UP
from tasks.errors import SettingsError

LEVELS = 127
"""Largest integer of the grid; -128 is left out, so that it is symmetric."""


def round_weights(model: PreTrainedModel) -> int:
    """Round the weights of a model's projections in place; return the number of rounded tensors.

    Raises:
        SettingsError: the last axis of a projection is not known to be its inputs; then its scales
            would be those of no output. Nothing is rounded.
    """
    kept = {
        id(parameter)
        for module in (
            model.get_input_embeddings(),
            model.get_output_embeddings(),
            *named_routers(model).values(),
        )
        if module is not None
        for parameter in module.parameters()
    }
    rounded = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.ndim >= 2 and id(parameter) not in kept
    }
    linear = {id(one.weight) for one in model.modules() if isinstance(one, nn.Linear)}
    width = next(model.get_input_embeddings().parameters()).shape[-1]
    for name, parameter in rounded.items():
        # Of stacked experts, [E, 2I, H] and [E, H, I]; gpt_oss has them the other way around.
        shape = parameter.shape
        stacked = (name.endswith(GATE_UP) and shape[-1] == width) or (
            name.endswith(DOWN) and shape[-2] == width
        )
        if id(parameter) not in linear and not stacked:
            raise SettingsError(
                f"{name} {tuple(shape)} is no linear layer, and no stacked experts whose last axis "
                "are inputs: int8 has no scale per output for it. Leave precision at float32"
            )
    with torch.no_grad():
        for parameter in rounded.values():
            parameter.copy_(rounded_to_int8(parameter))
    return len(rounded)


def rounded_to_int8(weights: torch.Tensor) -> torch.Tensor:
    """Round a tensor whose last axis are inputs; an output without a weight stays 0."""
    rows_OI = weights.reshape(-1, weights.shape[-1])
    scales_O = rows_OI.abs().amax(dim=1) / LEVELS
    # An output whose weights are all 0, or so small that their scale is 0 in fp32, has scale 1.
    scales_O = torch.where(scales_O > 0.0, scales_O, 1.0)
    zeros_O = torch.zeros(len(rows_OI), dtype=torch.int32, device=weights.device)
    return torch.fake_quantize_per_channel_affine(
        rows_OI, scales_O, zeros_O, 0, -LEVELS, LEVELS
    ).reshape(weights.shape)
