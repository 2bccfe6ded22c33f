"""Record which experts a model's routers choose, or make them use recorded ones.

Source: Rollout Routing Replay (arXiv 2510.11370), CompassMax's Router Replay. The mask
comes from the recording, the gate weights from the live logits: gradient reaches the
router through the logits of the replayed experts only. No globals: both tools are
context managers on one model.

Letters: M tokens in model order (batch-major), L MoE layers, E experts, K experts per token.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import nn

from data_schemas.routing import Routing
from tasks.algorithms.routing import (
    gate_weights,
    replayed_choice,
)
from tasks.errors import DataError, SettingsError
from tasks.models.architectures import architecture_of

RouterOutput = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""(logits_ME, gate weights_MK, expert ids_MK)"""


def named_routers(model: nn.Module) -> dict[str, nn.Module]:
    """The routers of a transformers model by name, in layer order; none in a dense model."""
    return {
        name: module
        for name, module in model.named_modules()
        if hasattr(module, "top_k") and name.endswith(".gate")
    }


def routers(model: nn.Module) -> list[nn.Module]:
    """The routers of a model in layer order.

    Raises:
        SettingsError: the model has none, so there is nothing to replay.
    """
    modules = list(named_routers(model).values())
    if not modules:
        raise SettingsError("the model has no MoE router; set router_replay to 'off'")
    return modules


def routing_of(model: nn.Module) -> Routing:
    """How the routers of a model turn logits into gates.

    Raises:
        SettingsError: as `routers`.
    """
    num_routers, config = len(routers(model)), cast("Any", model.config)
    architecture = architecture_of(config.to_dict())
    assert architecture.routing is not None
    assert len(architecture.moe_layers) == num_routers, "config.json names other layers"
    return architecture.routing


def bias_of(router: nn.Module) -> torch.Tensor | None:
    """The bias that a router adds for its choice, if it has one."""
    return dict(router.named_buffers()).get("e_score_correction_bias")


class Recording:
    """Expert ids seen so far, one [M, K] tensor per layer and forward pass."""

    def __init__(self, num_layers: int) -> None:
        self._passes: list[list[torch.Tensor]] = [[] for _ in range(num_layers)]

    def add(self, layer: int, experts_MK: torch.Tensor) -> None:
        """Keep one layer's choice."""
        self._passes[layer].append(experts_MK)

    def take(self) -> torch.Tensor:
        """Return what was recorded since the last call as [M, L, K], and forget it."""
        stacked = torch.stack([torch.cat(passes) for passes in self._passes], dim=1)
        for passes in self._passes:
            passes.clear()
        return stacked


@contextmanager
def recording(model: nn.Module) -> Iterator[Recording]:
    """Record every router's choice while the block runs."""
    modules = routers(model)
    record = Recording(len(modules))

    def hook_of(layer: int):
        def hook(_module: nn.Module, _args: object, output: RouterOutput) -> None:
            record.add(layer, output[2].detach())

        return hook

    handles = [module.register_forward_hook(hook_of(layer)) for layer, module in enumerate(modules)]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def replaying(model: nn.Module, experts_MLK: torch.Tensor, routing: Routing) -> Iterator[None]:
    """Make every router use the recorded experts while the block runs.

    Args:
        experts_MLK: int64 for all M tokens of the forward pass; a row holding
            MISSING_ROUTE leaves that token to the native router.
        routing: of the model.

    Raises:
        DataError: the shape does not fit the model or a forward pass.
    """
    modules = routers(model)
    if experts_MLK.ndim != 3 or experts_MLK.shape[1] != len(modules):
        raise DataError(
            f"routes are {tuple(experts_MLK.shape)}, the model needs [tokens, {len(modules)}, k]"
        )

    def hook_of(layer: int):
        def hook(_module: nn.Module, _args: object, output: RouterOutput) -> RouterOutput:
            logits_ME, native_gates_MK, native_MK = output
            if logits_ME.shape[0] != experts_MLK.shape[0]:
                raise DataError(
                    f"routes for {experts_MLK.shape[0]} tokens, "
                    f"but the forward pass has {logits_ME.shape[0]}"
                )
            chosen_MK = replayed_choice(native_MK, experts_MLK[:, layer])
            gates_MK = gate_weights(logits_ME, chosen_MK, routing)
            return logits_ME, gates_MK.to(native_gates_MK.dtype), chosen_MK

        return hook

    handles = [module.register_forward_hook(hook_of(layer)) for layer, module in enumerate(modules)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watching(model: nn.Module) -> Iterator[list[torch.Tensor]]:
    """Append one tensor of logits [M, E] per MoE layer and forward pass while the block runs."""
    logits_LME: list[torch.Tensor] = []

    def hook(_module: nn.Module, _args: object, output: RouterOutput) -> None:
        logits_LME.append(output[0])

    handles = [router.register_forward_hook(hook) for router in routers(model)]
    try:
        yield logits_LME
    finally:
        for handle in handles:
            handle.remove()
