# pyright: reportMissingImports=false
"""Megatron's own training loop, as its training script sets it: what an update is measured against.

Cross-entropy of the response tokens by the model's own head, which computes logits at every row,
with the experts that the routers choose, and the step of Megatron's optimizer. Layers are those of
Megatron's own specification, on a CPU its local ones with attention of packed rows; no prefix is
shared. Layout, packing and the optimizer's numbers are those of `MegatronTrainer`. What differs of
the settings is in `FUSED` and `REPLICA`; fused permutation of tokens to experts is on in both. One
process, no filler.

Letters: B = 1 packed row of tokens, M packed rows.
"""

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import nn

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.protocols import TokenBatch
from tasks.engines.trainer_megatron import convert, model, optimizer, parallel
from tasks.engines.trainer_megatron.geometry import Geometry, read_geometry
from tasks.engines.trainer_megatron.micro_batches import MicroBatch, cut, divide
from tasks.engines.trainer_megatron.parallel import Ranks
from tasks.engines.trainer_megatron.silent_warnings import silence

FUSED = {
    "bias_dropout_fusion": True,
    # Its own output layer asks for Apex's extension, and is an error without it.
    "gradient_accumulation_fusion": importlib.util.find_spec("fused_weight_gradient_mlp_cuda")
    is not None,
}
"""What megatron/training/arguments.py turns on and `MegatronTrainer` does not; kernels of a GPU."""
REPLICA = DistributedDataParallelConfig(
    grad_reduce_in_fp32=True,
    overlap_grad_reduce=True,
    overlap_param_gather=True,
    use_distributed_optimizer=True,
    check_for_nan_in_grad=True,
)
"""As that file in bf16, with the flags of examples/mixtral: both overlaps."""


def own_config(geometry: Geometry, layout: LayoutSettings, ranks: Ranks) -> TransformerConfig:
    """Megatron's settings of a model, with the kernels that its training script turns on."""
    config = model.transformer_config(geometry, layout, ranks)
    return replace(config, **FUSED) if ranks.device.type == model.FAST_DEVICE else config


class PlainLoop:
    """A model with Megatron's optimizer and nothing of ours between the two.

    Args:
        folder: a Hugging Face model directory.

    Raises:
        SettingsError: the layout does not fit the model or one process.
    """

    def __init__(self, folder: Path, layout: LayoutSettings) -> None:
        silence()
        self._layout, self._ranks = layout, parallel.initialise(layout)
        geometry = read_geometry(folder)
        config = own_config(geometry, layout, self._ranks)
        gpt = model.assemble(geometry, config, model.kernels(config, self._ranks), self._ranks)
        convert.load(gpt, folder, geometry, self._ranks)
        # Copied: it keeps the size of its buckets in its settings.
        self._replica = DistributedDataParallel(config, replace(REPLICA), gpt)
        config.finalize_model_grads_func = finalize_model_grads  # divides by the tokens
        config.no_sync_func = self._replica.no_sync  # gradients are reduced beside the last one
        self._optimizer = optimizer.make_optimizer(gpt, self._replica, 0.0)

    def update(self, batch: TokenBatch, *, learning_rate: float) -> dict[str, float]:
        """Take one step on the mean cross-entropy of the response tokens.

        Returns:
            'loss' and 'grad_norm'.
        """
        self._replica.zero_grad_buffer()
        self._optimizer.zero_grad()
        (divided,) = divide(
            batch.lengths_N.tolist(), num_ranks=1, max_tokens=self._layout.micro_batch_tokens
        )
        micros = [cut(batch, sequences) for sequences in divided]
        losses = get_forward_backward_func()(
            forward_step_func=self._step,
            data_iterator=iter(micros),
            model=[self._replica],
            num_microbatches=len(micros),
            seq_length=1,  # unused without pipeline stages
            micro_batch_size=1,
            forward_only=False,
        )
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        _, norm, _ = self._optimizer.step()
        tokens = int(batch.response_NT.sum())
        return {"loss": float(torch.stack(losses).sum()) / tokens, "grad_norm": float(norm)}

    def close(self) -> None:
        """Free the memory."""
        vars(self).clear()
        parallel.free_memory()

    def _step(self, waiting: Iterator[MicroBatch], replica: nn.Module):
        """Compute the losses of a micro-batch's rows, as Megatron's schedules ask for them."""
        micro, device = next(waiting), self._ranks.device
        labels_M, mask_M = torch.zeros_like(micro.tokens_M), torch.zeros(len(micro.tokens_M))
        labels_M[micro.before_R], mask_M[micro.before_R] = micro.batch.tokens_R, 1.0
        losses_BM = replica(
            micro.tokens_M[None].to(device),
            labels=labels_M[None].to(device),
            **model.attention_inputs(micro.parts, device),
        )

        def total(losses_BM: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            tokens = mask_M.sum().to(device, torch.int)
            loss = (losses_BM[0].float() * mask_M.to(device)).sum()
            return loss, tokens, loss.detach()

        return losses_BM, total
