"""Router losses of one update, from the native logits of a model's routers.

Replayed routes change which experts a token uses, not its router's logits. The losses use these
logits, so that the balance loss applies to the router's own choices.

Letters: M packed rows, L MoE layers, E experts.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from data_schemas.routing import Routing
from tasks.algorithms.router_losses import balance_loss, expert_loads, z_loss
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.embedded.router_replay import (
    bias_of,
    named_routers,
    routers,
    routing_of,
    watching,
)
from tasks.errors import SettingsError


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

    def loads(
        self, model: nn.Module, logits_LME: list[torch.Tensor], copies_M: torch.Tensor
    ) -> list[torch.Tensor]:
        """Count the expert loads of a part of the update, for the balance loss."""
        routing = routing_of(model)
        return [
            expert_loads(logits_ME, copies_M, routing, bias_of(router))
            for logits_ME, router in zip(logits_LME, routers(model), strict=True)
        ]

    def count(self, model: nn.Module, loads: list[torch.Tensor]) -> None:
        """Add the expert loads of a part of the update."""
        self._routing = routing_of(model)
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
