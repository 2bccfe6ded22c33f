"""Record which experts a model's routers choose, or make them use recorded ones; router losses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from data_schemas.routing import Routing
from tasks.algorithms.routing import (
    balance_loss,
    expert_loads,
    gate_weights,
    replayed_choice,
    z_loss,
)
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.errors import DataError, SettingsError
from tasks.models.architectures import architecture_of

# Record which experts a model's routers choose, or make them use recorded ones.
#
# Source: Rollout Routing Replay (arXiv 2510.11370), CompassMax's Router Replay. The mask
# comes from the recording, the gate weights from the live logits: gradient reaches the
# router through the logits of the replayed experts only. No globals: both tools are
# context managers on one model.
#
# Letters: M tokens in model order (batch-major), L MoE layers, E experts, K experts per token.

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
    """How the routers of a model with routers turn logits into gates."""
    config: Any = model.config
    architecture = architecture_of(config.to_dict())
    assert architecture.routing is not None
    assert len(architecture.moe_layers) == len(named_routers(model)), (
        "config.json names other layers"
    )
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
def replaying(model: nn.Module, experts_MLK: torch.Tensor) -> Iterator[None]:
    """Make every router use the recorded experts while the block runs.

    Args:
        experts_MLK: int64 for all M tokens of the forward pass; a row holding
            MISSING_ROUTE leaves that token to the native router.

    Raises:
        DataError: the shape does not fit the model or a forward pass.
    """
    modules, routing = routers(model), routing_of(model)
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


# Router losses of one update, from the native logits of a model's routers.
#
# Replayed routes change which experts a token uses, not its router's logits. The losses use these
# logits, so that the balance loss applies to the router's own choices.
#
# Letters: M packed rows, L MoE layers, E experts.


class RouterTerms:
    """Collects a model's router logits and turns them into losses; does nothing when off."""

    def __init__(self, auxiliary: Auxiliary, num_tokens: int) -> None:
        self._auxiliary = auxiliary
        self._num_tokens = max(1, num_tokens)
        self._counts_LE: list[torch.Tensor] = []
        self._routing: Routing | None = None

    @contextmanager
    def collect_logits(self, model: nn.Module) -> Iterator[list[torch.Tensor]]:
        """Append one logits tensor [M, E] per MoE layer to the list while the block runs.

        Raises:
            SettingsError: the model has no MoE router.
        """
        if self._auxiliary.balance == 0.0 and self._auxiliary.router_z == 0.0:
            yield []
            return
        if not named_routers(model):
            raise SettingsError(
                "the model has no MoE router; leave the terms balance and router_z out"
            )
        with watching(model) as logits_LME:
            yield logits_LME

    def count(
        self, model: nn.Module, logits_LME: list[torch.Tensor], copies_M: torch.Tensor
    ) -> None:
        """Add a part of the update to the expert loads of the balance loss."""
        self._routing = routing_of(model)
        loads = [
            expert_loads(logits_ME, copies_M, self._routing, bias_of(router))
            for logits_ME, router in zip(logits_LME, routers(model), strict=True)
        ]
        before = self._counts_LE or [torch.zeros_like(load_E) for load_E in loads]
        self._counts_LE = [one + other for one, other in zip(before, loads, strict=True)]

    def loss(
        self, logits_LME: list[torch.Tensor], copies_M: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Weighted losses of a part of the update, and their unweighted values."""
        total, metrics = torch.zeros(()), {}
        if self._auxiliary.balance > 0.0:
            assert self._routing is not None, "loads are counted before"
            terms = [
                balance_loss(logits_ME, copies_M, counts_E, self._num_tokens, self._routing)
                for logits_ME, counts_E in zip(logits_LME, self._counts_LE, strict=True)
            ]
            mean = torch.stack(terms).mean()
            total = total + self._auxiliary.balance * mean
            metrics["auxiliary/balance"] = float(mean.detach())
        if self._auxiliary.router_z > 0.0:
            terms = [z_loss(logits_ME, copies_M, self._num_tokens) for logits_ME in logits_LME]
            mean = torch.stack(terms).mean()
            total = total + self._auxiliary.router_z * mean
            metrics["auxiliary/router_z"] = float(mean.detach())
        return total, metrics
