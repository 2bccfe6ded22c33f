"""What one rank of a world computes with its slice of a vocabulary: run by gloo_world."""

import torch
from torch import distributed

from tasks.algorithms.kept_sets import KeptTokens
from tasks.engines.trainer_megatron.vocabulary import sharded_scores, vocabulary_slice


def slice_scores(
    hidden_RH: torch.Tensor,
    head_VH: torch.Tensor,
    tokens_R: torch.Tensor,
    kept: KeptTokens | None,
    padded: int,
) -> tuple[torch.Tensor, ...]:
    """Scores [R], and the gradients of hidden states [R, H] and of this rank's columns [V, H].

    Args:
        head_VH: of the whole vocabulary; it is filled up to `padded` columns and divided.
    """
    distributed.init_process_group("gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    columns = padded // size
    filled_VH = torch.full((padded, head_VH.shape[1]), 7.0)
    filled_VH[: len(head_VH)] = head_VH
    own_VH = filled_VH[rank * columns : (rank + 1) * columns].requires_grad_()
    hidden_RH = hidden_RH.clone().requires_grad_()
    share = vocabulary_slice(len(head_VH), columns, rank, distributed.group.WORLD)
    logprobs_R, entropy_R = sharded_scores(
        hidden_RH, own_VH, tokens_R, 0.7, share, with_entropy=True, sets=kept
    )
    (logprobs_R.sin().sum() + entropy_R.cos().sum()).backward()
    slope_RH = hidden_RH.grad
    distributed.all_reduce(slope_RH)  # as whoever gathered the hidden states does
    distributed.destroy_process_group()
    return logprobs_R.detach(), entropy_R.detach(), slope_RH, own_VH.grad
