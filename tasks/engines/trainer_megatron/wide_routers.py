# pyright: reportMissingImports=false
"""Routers with weights in fp32 in a model that is otherwise trained in bf16 or fp16.

Megatron-core 0.16.1 computes a router's logits in fp32 (`moe_router_dtype`), from weights that
it casts to the model's precision. Its gradient buffers and its distributed optimizer accept a
model of several precisions: each has a buffer of its own, and a parameter in fp32 is its own
master weight. Two places assume one precision, hence the hook and the group below.
"""

from typing import Any

import torch
from megatron.core.models.gpt import GPTModel
from megatron.core.optimizer import OptimizerConfig, get_standard_config_overrides
from megatron.core.optimizer.optimizer_config import ParamKey
from megatron.core.transformer.moe.router import TopKRouter

from tasks.engines.trainer_megatron.names import ROUTER
from tasks.errors import SettingsError


def widen(gpt: GPTModel) -> None:
    """Give the routers of a new model weights in fp32.

    Transformer Engine multiplies matrices of one precision only, so a router's input is cast before
    it; without Transformer Engine Megatron does the same.

    Raises:
        SettingsError: the model is dense.
    """
    routers = _routers(gpt)
    if not routers:
        raise SettingsError("engines.fp32_router is set, but a dense model has no router")
    for router in routers:
        router.weight.data = router.weight.data.float()
        router.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(), *inputs[1:]))


def are_wide(gpt: GPTModel) -> bool:
    """Whether the routers' weights are in fp32 and the others are not."""
    is_half = gpt.config.params_dtype is not torch.float32
    return is_half and any(router.weight.dtype is torch.float32 for router in _routers(gpt))


def param_groups(config: OptimizerConfig) -> dict[ParamKey, Any]:
    """Megatron's own param groups, and one of the routers.

    The distributed optimizer orders the parameters of a group by precision, but looks up their
    states by their order in the buffers: in a group with two precisions a checkpoint would hold
    states under other parameters' names. `is_decoupled_lr` is one of the four values by which a
    checkpoint distinguishes groups; Megatron-core reads it for nothing else.
    """
    routers = {ParamKey(name=f"*.{ROUTER}"): {"is_decoupled_lr": True}}
    return get_standard_config_overrides(config) | routers


def _routers(gpt: GPTModel) -> list[TopKRouter]:
    return [module for module in gpt.modules() if isinstance(module, TopKRouter)]
