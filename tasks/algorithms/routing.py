"""Expert choices: selection, gates under replay, trace checks, stacking, agreement.

Source: R3 (arXiv 2510.11370), and Router Replay in CompassMax-V3-Thinking.
Letters: M tokens, T tokens of one sequence, L MoE layers, E experts, K experts per token.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rollouts import MISSING_ROUTE, RouterTrace
from data_schemas.routing import Routing
from tasks.errors import DataError

_ROWS_AT_ONCE = 2**15
"""Checked at once: what is compared stays in the processor's cache."""
SMALLEST_SUM = 1e-20
"""Added to the sum of sigmoid gates, as in the modelling code of DeepSeek-V3."""


def replayed_choice(native_MK: torch.Tensor, recorded_MK: torch.Tensor) -> torch.Tensor:
    """Use the recorded experts; a token whose row is missing keeps the native ones."""
    missing_M1 = (recorded_MK == MISSING_ROUTE).any(dim=1, keepdim=True)
    return torch.where(missing_M1, native_MK, recorded_MK)


def selection(
    logits_ME: torch.Tensor, routing: Routing, bias_E: torch.Tensor | None = None
) -> torch.Tensor:
    """Choose K experts per token, as the router itself does.

    Of several groups those are kept whose two best experts have the largest sum (DeepSeek-V3,
    2412.19437, and the modelling code of GLM-4.5 and Ling 2.0).

    Args:
        bias_E: of a biased routing; it has no part in the gates.
    """
    # The softmax keeps the order of its logits.
    ranks_ME = logits_ME.detach()
    if routing.score == "sigmoid":
        ranks_ME = torch.sigmoid(ranks_ME.float())
    if bias_E is not None:
        ranks_ME = ranks_ME + bias_E
    if routing.groups > 1:
        grouped = ranks_ME.unflatten(1, (routing.groups, -1))
        best = grouped.topk(2, dim=2).values.sum(dim=2).topk(routing.kept_groups, dim=1).indices
        dropped = torch.ones(grouped.shape[:2], dtype=torch.bool, device=ranks_ME.device)
        dropped.scatter_(1, best, value=False)
        ranks_ME = grouped.masked_fill(dropped[..., None], -torch.inf).flatten(1)
    return ranks_ME.topk(routing.top_k, dim=1).indices


def gate_weights(
    logits_ME: torch.Tensor, chosen_MK: torch.Tensor, routing: Routing
) -> torch.Tensor:
    """Gates at given experts, in fp32; gradient flows through the logits only.

    A softmax over all experts whose K gates are renormalised is a softmax over the K logits.
    """
    wide_ME = logits_ME.float()
    if routing.score == "sigmoid":
        gates_MK = torch.sigmoid(wide_ME.gather(1, chosen_MK))
        if routing.renormalised:
            gates_MK = gates_MK / (gates_MK.sum(dim=1, keepdim=True) + SMALLEST_SUM)
    elif routing.renormalised:
        gates_MK = torch.softmax(wide_ME.gather(1, chosen_MK), dim=1)
    else:
        gates_MK = torch.softmax(wide_ME, dim=1).gather(1, chosen_MK)
    return gates_MK if routing.scale == 1.0 else gates_MK * routing.scale


def check_trace(trace: RouterTrace, num_tokens: int, num_experts: int) -> None:
    """Reject a trace that cannot belong to this sequence.

    Raises:
        DataError: wrong row count, an id out of range, or a repeated expert in a row (a fused
            kernel that recorded nothing returns zeros).
    """
    experts_TLK = trace.experts_TLK
    if experts_TLK.ndim != 3 or experts_TLK.shape[0] != num_tokens - 1:
        raise DataError(f"trace is {experts_TLK.shape}, expected [{num_tokens - 1}, layers, k]")
    rows_NK = experts_TLK.reshape(-1, experts_TLK.shape[2])
    if np.issubdtype(rows_NK.dtype, np.signedinteger):  # uint8: no row is missing
        rows_NK = rows_NK[(rows_NK != MISSING_ROUTE).all(axis=1)]
    if rows_NK.size == 0:
        return
    if rows_NK.min() < 0 or rows_NK.max() >= num_experts:
        raise DataError(f"trace names expert {int(rows_NK.max())}, the model has {num_experts}")
    if any(
        _repeats(rows_NK[at : at + _ROWS_AT_ONCE]) for at in range(0, len(rows_NK), _ROWS_AT_ONCE)
    ):
        raise DataError("trace repeats an expert within a row: the engine did not record routing")


def _repeats(rows_NK: NDArray[np.uint8 | np.int16]) -> bool:
    """Compare the experts of every row in pairs: K is small, and sorting is 20 times slower."""
    columns_KN = np.ascontiguousarray(rows_NK.T)
    return any((columns_KN[by:] == columns_KN[:-by]).any() for by in range(1, len(columns_KN)))


def pad_traces(
    traces: list[RouterTrace | None], num_tokens: int, num_layers: int, k: int
) -> NDArray[np.int16]:
    """Stack traces to [N, T, L, K]; positions beyond a trace are MISSING_ROUTE."""
    stacked_NTLK = np.full((len(traces), num_tokens, num_layers, k), MISSING_ROUTE, dtype=np.int16)
    for row, trace in enumerate(traces):
        if trace is not None:
            stacked_NTLK[row, : trace.experts_TLK.shape[0]] = trace.experts_TLK
    return stacked_NTLK


def missing_rows(experts_NTLK: torch.Tensor, lengths_N: torch.Tensor) -> int:
    """Count the tokens that use the native router in any layer although routes are replayed.

    A sequence's last token does not count: nothing is predicted from it, and a rollout engine
    that stops there has not routed it.
    """
    missing_NT = (experts_NTLK == MISSING_ROUTE).any(dim=3).any(dim=2)
    fed_NT = torch.arange(missing_NT.shape[1]) < lengths_N[:, None] - 1
    return int((missing_NT & fed_NT).sum())


def disagreement(native_MLK: torch.Tensor, recorded_MLK: torch.Tensor) -> float:
    """Share of (token, layer) choices whose expert sets differ; missing rows do not count.

    Returns 0.0 when no row is recorded.
    """
    present_ML = (recorded_MLK != MISSING_ROUTE).all(dim=2)
    if not present_ML.any():
        return 0.0
    same_ML = (native_MLK.sort(dim=2).values == recorded_MLK.sort(dim=2).values).all(dim=2)
    return float((~same_ML[present_ML]).double().mean())
