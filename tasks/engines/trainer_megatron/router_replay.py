# pyright: reportMissingImports=false
"""Router Replay inside Megatron-core: which experts a micro-batch uses, forward and recomputed.

Source: Rollout Routing Replay (arXiv 2510.11370). The choice comes from the recording, the
probabilities from the live logits, so gradient reaches the router through the replayed experts.

Megatron's own RouterReplay keeps all routers of the process in one list, with one target per
router. This is wrong with a second model, and with recomputation under 1F1B, where the forward
pass of the next micro-batch precedes the backward pass of this one. Here a router belongs to one
model, and the routes of pending recomputations are in a queue per router.

Letters: M packed rows of this rank's part of a micro-batch, L MoE layers of this pipeline stage,
E experts, K experts per token.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from megatron.core.transformer.moe.router import TopKRouter
from megatron.core.transformer.moe.router_replay import RouterReplay
from torch import nn

from tasks.algorithms.routing import replayed_choice
from tasks.errors import DataError, SettingsError

TopK = Callable[..., tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True, slots=True)
class Routes:
    """Routes of one micro-batch for the routers of this rank."""

    experts_MLK: torch.Tensor | None
    """int64; a row holding MISSING_ROUTE uses the native router, None all rows do."""
    copies_M: torch.Tensor
    """float: number of tokens that share the row; 0 for padding."""


class _Pass:
    """The forward pass that is running on a model, if one is."""

    def __init__(self) -> None:
        self.routes: Routes | None = None
        self.training = False
        self.record = False


class LayerReplay(RouterReplay):
    """Takes the place of Megatron's object in one router."""

    def __init__(self, running: _Pass, layer: int) -> None:
        # Not the parent's: it would put this router on the list of the whole process.
        self._running, self._layer = running, layer
        self._waiting: deque[Routes] = deque()
        self.recorded_MK: torch.Tensor | None = None
        self.current: Routes | None = None
        """Routes of the router's last call, for hooks on the router."""

    @property
    def pending(self) -> int:
        """Number of micro-batches whose recomputation of this layer is pending."""
        return len(self._waiting)

    def forget(self) -> None:
        """Clear the queue after an aborted step."""
        self._waiting.clear()
        self.recorded_MK = self.current = None

    def get_replay_topk(
        self,
        scores: torch.Tensor,
        topk: int,
        num_groups: int | None = None,
        group_topk: int | None = None,
        default_compute_topk: TopK | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose experts [M, K] for scores [M, E]; called by Megatron's router.

        Raises:
            DataError: the micro-batch has another number of rows than its routes.
        """
        assert default_compute_topk is not None
        self.current = routes = self._routes()
        values_MK, native_MK = default_compute_topk(scores, topk, num_groups, group_topk)
        if self._running.record:
            self.recorded_MK = native_MK.detach()
        if routes is None or routes.experts_MLK is None:
            return values_MK, native_MK
        recorded_MK = routes.experts_MLK[:, self._layer]
        if recorded_MK.shape != native_MK.shape:
            raise DataError(
                f"routes of a layer are {tuple(recorded_MK.shape)}, "
                f"but its router chooses {tuple(native_MK.shape)}"
            )
        chosen_MK = replayed_choice(native_MK, recorded_MK)
        return scores.gather(1, chosen_MK), chosen_MK

    def _routes(self) -> Routes | None:
        """Routes of this call: a call outside of a forward pass computes the oldest one again."""
        routes = self._running.routes
        if routes is None:
            return self._waiting.popleft() if self._waiting else None
        if self._running.training and not torch.is_grad_enabled():
            self._waiting.append(
                routes
            )  # a forward pass with activation checkpointing keeps no graph
        return routes


class ModelReplay:
    """The routers of one model on this pipeline stage, in layer order.

    Raises:
        SettingsError: routers are fused and would ignore recorded routes.
    """

    def __init__(self, model: nn.Module) -> None:
        # Any: where Megatron is not installed, a module has no attributes to a type checker.
        self.routers: list[Any] = [
            module for module in model.modules() if isinstance(module, TopKRouter)
        ]
        self._running = _Pass()
        self.layers = [LayerReplay(self._running, layer) for layer in range(len(self.routers))]
        for router, layer in zip(self.routers, self.layers, strict=True):
            if router.config.moe_router_fusion:
                raise SettingsError(
                    "Router Replay needs moe_router_fusion off: it skips the replay"
                )
            router.router_replay = layer

    @contextmanager
    def forward(self, routes: Routes, *, training: bool, record: bool = False) -> Iterator[None]:
        """Use routes in the forward pass of the block; passes outside are recomputation.

        Args:
            training: a backward pass will follow.
            record: keep the native choices for `recorded`.
        """
        running = self._running
        running.routes, running.training, running.record = routes, training, record
        try:
            yield
        finally:
            running.routes, running.record = None, False

    def recorded(self) -> torch.Tensor:
        """Native choices [M, L, K] of the last recorded forward pass, which is then forgotten."""
        recordings = [layer.recorded_MK for layer in self.layers]
        for layer in self.layers:
            layer.recorded_MK = None
        return torch.stack([chosen_MK for chosen_MK in recordings if chosen_MK is not None], dim=1)

    def finish(self) -> None:
        """Check that every recomputation found its routes; called when a step is done."""
        pending = [layer.pending for layer in self.layers]
        self.forget()
        assert not any(pending), f"routes left over per layer: {pending}"

    def forget(self) -> None:
        """Clear the queues after an aborted step."""
        for layer in self.layers:
            layer.forget()
