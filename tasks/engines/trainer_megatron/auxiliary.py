# pyright: reportMissingImports=false
"""Router losses of one update inside Megatron's layers, from the native logits.

The terms are those of engines/embedded/router_losses.py. They are attached to the autograd graph at
the router, so that pipeline stages without the loss and layers with activation recomputation train
their routers too.

Letters: M packed rows of this rank, L MoE layers of this pipeline stage, E experts.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from megatron.core.transformer.moe.router import TopKRouter
from torch import distributed

from data_schemas.routing import Routing
from tasks.algorithms.router_losses import balance_loss, expert_loads, z_loss
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.trainer_megatron.router_replay import ModelReplay
from tasks.engines.trainer_megatron.transfers import to_device

RouterOutput = tuple[torch.Tensor, torch.Tensor]
"""(probabilities_ME, routing map_ME)"""


class RouterAuxiliaryLoss:
    """The router losses of one update on one rank.

    Args:
        num_tokens: of the whole update, padding not counted.
        places_L: indices in the model of this stage's MoE layers.
        num_layers: MoE layers of the whole model.
    """

    def __init__(
        self,
        replay: ModelReplay,
        auxiliary: Auxiliary,
        *,
        num_tokens: int,
        places_L: list[int],
        num_layers: int,
        routing: Routing | None,
    ) -> None:
        self._replay, self._auxiliary = replay, auxiliary
        self._num_tokens, self._places_L = max(1, num_tokens), places_L
        self._num_layers, self._routing = num_layers, routing
        self._counts_LE: torch.Tensor | None = None
        self._sums: dict[str, torch.Tensor] = {}

    @property
    def needs_counts(self) -> bool:
        """Whether a separate pass must count loads first: balance is a product of two means."""
        return self._auxiliary.balance > 0.0

    @contextmanager
    def count_loads(self) -> Iterator[None]:
        """Count over all ranks how often each expert is selected while the block runs.

        Counts lie on the device, fp32 [L, E], and are copied to the host once, at the end.
        """
        routers, layers = self._replay.routers, self._replay.layers
        num_experts = routers[0].num_experts if routers else 0
        device = routers[0].weight.device if routers else torch.device("cpu")
        counts_LE = torch.zeros(self._num_layers, num_experts, device=device)

        def count(router: TopKRouter, layer: int, rows: torch.Tensor) -> None:
            routes = layers[layer].current
            assert routes is not None
            assert self._routing is not None
            counts_LE[self._places_L[layer]] += expert_loads(
                _logits(router, rows), routes.copies_M, self._routing, router.expert_bias
            )

        with self._hooked(lambda router, layer, rows, _: count(router, layer, rows)):
            yield
        host_LE = counts_LE.cpu()
        distributed.all_reduce(host_LE)
        self._counts_LE = to_device(host_LE, device)

    @contextmanager
    def attach_losses(self) -> Iterator[None]:
        """Add the losses to the graph of the training passes run in the block."""
        if self._auxiliary.balance == 0.0 and self._auxiliary.router_z == 0.0:
            yield
            return

        def attach(
            router: TopKRouter, layer: int, rows: torch.Tensor, output: RouterOutput
        ) -> RouterOutput | None:
            if not torch.is_grad_enabled():  # checkpointed: it runs again with a graph
                return None
            loss = self._loss(_logits(router, rows), layer)
            if (scaled := router.config.grad_scale_func) is not None:  # as the policy loss in fp16
                loss = scaled(loss)
            return _Attach.apply(output[0], loss), output[1]

        with self._hooked(attach):
            yield

    def metrics(self) -> dict[str, float]:
        """This rank's part of the unweighted losses that are on."""
        on = {
            "auxiliary/balance": self._auxiliary.balance > 0.0,
            "auxiliary/router_z": self._auxiliary.router_z > 0.0,
        }
        return {name: float(self._sums.get(name, 0.0)) for name, is_on in on.items() if is_on}

    def _loss(self, logits_ME: torch.Tensor, layer: int) -> torch.Tensor:
        routes = self._replay.layers[layer].current
        assert routes is not None
        total = torch.zeros((), device=logits_ME.device)
        if self._auxiliary.balance > 0.0:
            assert self._counts_LE is not None
            counts_E = self._counts_LE[self._places_L[layer]]
            assert self._routing is not None
            term = balance_loss(
                logits_ME, routes.copies_M, counts_E, self._num_tokens, self._routing
            )
            total = total + self._weighed("auxiliary/balance", term, self._auxiliary.balance)
        if self._auxiliary.router_z > 0.0:
            term = z_loss(logits_ME, routes.copies_M, self._num_tokens)
            total = total + self._weighed("auxiliary/router_z", term, self._auxiliary.router_z)
        return total

    def _weighed(self, name: str, term: torch.Tensor, weight: float) -> torch.Tensor:
        mean = term / self._num_layers
        # On the device, in float64 as a sum of Python's numbers.
        self._sums[name] = self._sums.get(name, 0.0) + mean.detach().double()
        return weight * mean

    @contextmanager
    def _hooked(self, hook) -> Iterator[None]:
        def hook_of(layer: int):
            return lambda router, args, output: hook(router, layer, args[0], output)

        handles = [
            router.register_forward_hook(hook_of(layer))
            for layer, router in enumerate(self._replay.routers)
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


class _Attach(torch.autograd.Function):
    """Identity on a tensor that gives an attached loss a gradient of 1 in the backward pass."""

    @staticmethod
    def forward(ctx, tensor, loss):
        ctx.save_for_backward(loss)
        return tensor.view_as(tensor)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx, slope
    ):
        (loss,) = ctx.saved_tensors
        return slope, torch.ones_like(loss)


def _logits(router: TopKRouter, rows: torch.Tensor) -> torch.Tensor:
    """The router's own logits [M, E], before any replay."""
    return router.gating(rows).flatten(0, -2)
