# pyright: reportMissingImports=false
"""AdamW in Megatron's distributed optimizer, sharded over data-parallel ranks.

In bf16 and fp16 the optimizer holds fp32 master weights, except of routers that are in fp32
themselves, and gradients are added up in fp32.

In fp16 losses are multiplied by a scale, so that small gradients do not vanish. An update whose
gradients overflow is skipped, and the scale is halved.
"""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt import GPTModel
from megatron.core.optimizer import (
    ChainedOptimizer,
    MegatronOptimizer,
    OptimizerConfig,
    get_megatron_optimizer,
)
from megatron.core.optimizer.clip_grads import clip_grad_by_total_norm_fp32
from megatron.core.optimizer.grad_scaler import DynamicGradScaler
from megatron.core.tensor_parallel.layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from megatron.core.transformer.moe.moe_layer import MoELayer

from tasks.engines.embedded.trainer import ADAM_BETAS, GRAD_CLIP
from tasks.engines.trainer_megatron.wide_routers import are_wide, param_groups
from tasks.errors import EngineError

LOGGER = logging.getLogger(__name__)

ADAM_EPSILON = 1e-8
FIRST_LOSS_SCALE = 2.0**16
"""As torch.amp.GradScaler's; Megatron's 2**32 would skip about the first 16 updates."""
LOWEST_LOSS_SCALE = 1.0
GROWTH_INTERVAL = 1000
"""Updates in a row without overflow after which the scale is doubled; as Megatron's."""
MOST_OVERFLOWS = 8
"""Overflows since the scale was last doubled: a scale 256 times smaller than at the start."""


class LossScaler(DynamicGradScaler):
    """The one loss scale of a model in fp16, halved by every overflow.

    Megatron gives the optimizers of dense and of expert parameters a scale each, but multiplies
    losses by the first one's: after an overflow in one of them only, the others would differ.
    """

    def __init__(self) -> None:
        super().__init__(
            initial_scale=FIRST_LOSS_SCALE,
            min_scale=LOWEST_LOSS_SCALE,
            growth_factor=2.0,
            backoff_factor=0.5,
            growth_interval=GROWTH_INTERVAL,
            hysteresis=1,
        )

    def update(self, found_inf: bool) -> None:
        """Wait: every optimizer calls this, with what it has found in its own gradients."""

    def settle(self, found_inf: bool) -> None:
        """Adapt the scale to the gradients of all optimizers."""
        super().update(found_inf)

    @property
    def overflows(self) -> int:
        """Updates that were skipped since the scale was last doubled."""
        return self.hysteresis - self._hysteresis_tracker

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the scale and what it was adapted to; Megatron's asks for a CUDA device."""
        self._scale = state_dict["scale"].to(self._scale.device)
        self._growth_tracker = state_dict["growth_tracker"]
        self._hysteresis_tracker = state_dict["hysteresis_tracker"]


def replicate(gpt: GPTModel) -> DistributedDataParallel:
    """Add gradient buffers to a model, summed over micro-batches and ranks.

    Megatron would divide gradients by the number of ranks; here losses are parts of a sum.
    """
    config = gpt.config
    config.calculate_per_token_loss = True  # Megatron's name for: do not divide
    _mark(gpt)
    replica = DistributedDataParallel(
        config,
        DistributedDataParallelConfig(
            grad_reduce_in_fp32=True,
            overlap_grad_reduce=False,
            use_distributed_optimizer=True,
        ),
        gpt,
    )

    def finalise(model: list[torch.nn.Module], _num_tokens: object, **groups: Any) -> None:
        finalize_model_grads(model, None, **groups)

    config.finalize_model_grads_func = finalise
    return replica


def _mark(gpt: GPTModel) -> None:
    """Mark parameters whose placement Megatron 0.16.1 does not determine itself.

    Experts are never divided by tensor parallelism: the tensor ranks hold different ones or are
    replicas of each other, and in both cases see different tokens. Without the mark their
    gradients would not be added up over tensor ranks when expert parallel is 1. What tensor
    ranks divide is marked by Megatron's random initialisation only, which is not run here;
    without the mark the gradient norm would leave out all shares but the first.
    """
    divided = (ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding)
    for module in gpt.modules():
        if isinstance(module, divided):
            for parameter in module.parameters(recurse=False):
                vars(parameter)["tensor_model_parallel"] = True
        if isinstance(module, MoELayer):
            for parameter in module.get_submodule("experts").parameters():
                vars(parameter)["allreduce"] = False
                vars(parameter)["tensor_model_parallel"] = True


@contextmanager
def allocated_gradients(replica: DistributedDataParallel) -> Iterator[None]:
    """Allocate a replica's gradient buffers, zeroed; free them at the end, also after an error."""
    replica.restore_grad_buffers(synchronize=torch.cuda.is_available())
    try:
        replica.zero_grad_buffer()
        yield
    finally:
        free_gradients(replica)


def free_gradients(replica: DistributedDataParallel) -> None:
    """Free a replica's gradient buffers: a rollout engine on the same GPU has their memory."""
    on_gpu = torch.cuda.is_available()
    replica.offload_grad_buffers(synchronize=on_gpu, empty_cache=on_gpu)


def make_optimizer(
    gpt: GPTModel, replica: DistributedDataParallel, weight_decay: float
) -> MegatronOptimizer:
    """Make the optimizer of a model and its replica; norms and biases do not decay."""
    config = gpt.config
    settings = OptimizerConfig(
        optimizer="adam",
        lr=0.0,
        min_lr=0.0,
        weight_decay=weight_decay,
        adam_beta1=ADAM_BETAS[0],
        adam_beta2=ADAM_BETAS[1],
        adam_eps=ADAM_EPSILON,
        clip_grad=GRAD_CLIP,
        bf16=config.bf16,
        fp16=config.fp16,
        params_dtype=config.params_dtype,
        use_distributed_optimizer=True,
    )
    optimizer = get_megatron_optimizer(
        settings,
        [replica],
        param_groups(settings) if are_wide(gpt) else None,
    )
    for group in optimizer.param_groups:  # else done by Megatron's scheduler, which we do not use
        group["weight_decay"] = weight_decay * group["wd_mult"]
    if config.fp16:
        scaler = LossScaler()
        for one in _chain(optimizer):
            one.grad_scaler = scaler
        config.grad_scale_func = optimizer.scale_loss
    return optimizer


def apply(optimizer: MegatronOptimizer, learning_rate: float) -> dict[str, float]:
    """Clip the gradients and take a step, unless gradients in fp16 overflow.

    Returns:
        'grad_norm' before clipping; in fp16 also 'overflow_updates', 1 if the step was skipped,
        whose norm is 0, and the 'loss_scale' of the next update.

    Raises:
        EngineError: the norm is not finite or, in fp16, too many updates overflowed, on all ranks
            alike; no weight was changed.
    """
    overflow = optimizer.prepare_grads()
    scaler = _chain(optimizer)[0].grad_scaler
    scaling: dict[str, float] = {}
    if isinstance(scaler, LossScaler):
        scaler.settle(overflow)
        scaling = {"overflow_updates": float(overflow), "loss_scale": scaler.scale.item()}
        if scaler.overflows > MOST_OVERFLOWS:
            raise EngineError(
                f"in fp16 the gradients of {scaler.overflows} updates overflowed, and the loss "
                f"scale fell to {scaler.scale.item():g}; the last update was not applied. Set "
                "engines.layout.precision to 'bf16'."
            )
        if overflow:
            LOGGER.warning("gradients overflow: the update is skipped, %s", scaling)
            return {"grad_norm": 0.0} | scaling
    norm = float(optimizer.get_grad_norm())
    if not math.isfinite(norm):
        raise EngineError(f"gradient norm is {norm}; the update was not applied")
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    # Not optimizer.step(), which would divide gradients by the loss scale again.
    for one in _chain(optimizer):
        if parameters := one.get_parameters():
            clip_grad_by_total_norm_fp32(parameters, GRAD_CLIP, norm)
    optimizer.step_with_ready_grads()
    return {"grad_norm": norm} | scaling


def _chain(optimizer: MegatronOptimizer) -> list[Any]:
    """The optimizers of dense and of expert parameters."""
    assert isinstance(optimizer, ChainedOptimizer)
    return optimizer.chained_optimizers
