# pyright: reportMissingImports=false
"""AdamW in Megatron's distributed optimizer, sharded over data-parallel ranks.

In bf16 the optimizer holds fp32 master weights, except of routers that are in fp32 themselves, and
gradients are added up in fp32.
"""

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
from megatron.core.optimizer import MegatronOptimizer, OptimizerConfig, get_megatron_optimizer
from megatron.core.tensor_parallel.layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from megatron.core.transformer.moe.moe_layer import MoELayer

from tasks.engines.embedded.trainer import ADAM_BETAS, GRAD_CLIP
from tasks.engines.trainer_megatron.fp32_router import are_wide, param_groups
from tasks.errors import EngineError

ADAM_EPSILON = 1e-8


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
    return optimizer


def apply(optimizer: MegatronOptimizer, learning_rate: float) -> float:
    """Clip the gradients and take a step; returns the norm before clipping.

    Raises:
        EngineError: the norm is not finite, on all ranks alike; no weight was changed.
    """
    optimizer.prepare_grads()
    norm = float(optimizer.get_grad_norm())
    if not math.isfinite(norm):
        raise EngineError(f"gradient norm is {norm}; the update was not applied")
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    return norm
