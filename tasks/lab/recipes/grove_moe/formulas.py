"""Adjugate experts of Grove MoE: one small expert beside every group of neighbouring experts.

Source: Grove MoE (arXiv 2508.07785): y = sum_i rho_i (E_i(x) + scale A_g(i)(x)) over the chosen
experts i with gates rho, g(i) = i // size. An adjugate that several chosen experts share is
computed once, with the sum of their gates: a token uses between ceil(k / size) and k of them.

Differs: experts are chosen as in the model that was upcycled. The paper's bias, which balances the
experts without a loss, is not in its released serving code either; the balance loss of RL is
the term `balance`.

Letters: M tokens, K chosen experts per token.
"""

import torch


def summed_by_group(
    experts_MK: torch.Tensor, gates_MK: torch.Tensor, *, size: int, num_groups: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the adjugates of every token and their weights.

    Args:
        experts_MK: ids of the chosen experts.
        gates_MK: their weights.
        size: experts of a group.
        num_groups: groups of a layer, and so its adjugates.

    Returns:
        groups_MK, in which `num_groups` stands for a group that is listed already, and weights_MK,
        which are 0 there. Gradients flow through the weights.
    """
    groups_MK = experts_MK // size
    same_MKK = groups_MK[:, :, None] == groups_MK[:, None, :]
    listed_MK = same_MKK.tril(-1).any(dim=2)
    summed_MK = torch.where(same_MKK, gates_MK[:, None, :], 0.0).sum(dim=2)
    return groups_MK.masked_fill(listed_MK, num_groups), summed_MK.masked_fill(listed_MK, 0.0)
