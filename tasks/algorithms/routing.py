"""Expert choices: selection, gates under replay, trace checks, routes of a batch, agreement.

Source: R3 (arXiv 2510.11370), and Router Replay in CompassMax-V3-Thinking.
Letters: N sequences, M tokens, T tokens of one sequence, L MoE layers, E experts, K experts per
token.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

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

    Of one that was checked where it was recorded, only the number of rows is checked again.

    Raises:
        DataError: wrong row count, an id out of range, or a repeated expert in a row (a fused
            kernel that recorded nothing returns zeros).
    """
    experts_TLK = trace.experts_TLK
    if experts_TLK.ndim != 3 or experts_TLK.shape[0] != num_tokens - 1:
        raise DataError(f"trace is {experts_TLK.shape}, expected [{num_tokens - 1}, layers, k]")
    if trace.digest:
        return
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


def route_digest(trace: RouterTrace) -> str:
    """sha256 over dtype, shape and bytes of a trace."""
    if trace.digest:
        return trace.digest
    experts_TLK = np.ascontiguousarray(trace.experts_TLK)
    digest = hashlib.sha256(f"{experts_TLK.dtype}:{experts_TLK.shape}".encode())
    digest.update(experts_TLK.data)
    return digest.hexdigest()


def _repeats(rows_NK: NDArray[np.uint8 | np.int16]) -> bool:
    """Compare the experts of every row in pairs: K is small, and sorting is 20 times slower."""
    columns_KN = np.ascontiguousarray(rows_NK.T)
    return any((columns_KN[by:] == columns_KN[:-by]).any() for by in range(1, len(columns_KN)))


@dataclass(frozen=True, slots=True)
class Traces:
    """Recorded routes of some sequences, by reference and in the dtype of the record.

    As one int16 tensor they would take at least twice the memory, tens of GB at full scale: they
    are padded a micro-batch at a time.
    """

    of_sequences: tuple[NDArray[np.uint8 | np.int16] | None, ...]
    """[T, L, K] of each, its last token left out; None: nothing was recorded."""
    num_layers: int
    k: int
    digests: tuple[str, ...] = ()
    """Hashes of each, where another rank recorded and hashed it, else ""; () = of none."""

    def select(self, rows: Sequence[int], width: int, layers: Sequence[int] | None) -> "Traces":
        """Some sequences, up to a number of tokens, in some layers; None keeps all of them."""
        sequences = [self.of_sequences[row] for row in rows]
        digests = tuple(self.digests[row] for row in rows) if self.digests else ()
        if layers is None:
            parts = tuple(one if one is None else one[:width] for one in sequences)
            return Traces(parts, self.num_layers, self.k, digests)
        parts = tuple(one if one is None else in_layers(one[:width], layers) for one in sequences)
        return Traces(parts, len(layers), self.k, digests)

    def first(self, sequence: int, rows: int) -> NDArray[np.int16]:
        """The routes of a sequence's first tokens [rows, L, K], MISSING_ROUTE behind its record."""
        filled_TLK = np.full((rows, self.num_layers, self.k), MISSING_ROUTE, dtype=np.int16)
        recorded_TLK = self.of_sequences[sequence]
        if recorded_TLK is not None:
            recorded = recorded_TLK[:rows]
            filled_TLK[: len(recorded)] = recorded
        return filled_TLK

    def padded(self, width: int) -> torch.Tensor:
        """All of them as int16 [N, width, L, K]."""
        sequences = range(len(self.of_sequences))
        stacked_NTLK = np.empty((len(sequences), width, self.num_layers, self.k), dtype=np.int16)
        for sequence in sequences:
            stacked_NTLK[sequence] = self.first(sequence, width)
        return torch.from_numpy(stacked_NTLK)


def in_layers(
    experts_TLK: NDArray[np.uint8 | np.int16], layers: Sequence[int]
) -> NDArray[np.uint8 | np.int16]:
    """Some layers of a trace; nothing is copied where they are consecutive."""
    first = layers[0] if layers else 0
    if list(layers) == list(range(first, first + len(layers))):
        return experts_TLK[:, first : first + len(layers)]
    return experts_TLK[:, list(layers)]


def missing_rows(routes: "torch.Tensor | Traces", lengths_N: torch.Tensor) -> int:
    """Count the tokens that use the native router in any layer although routes are replayed.

    A sequence's last token does not count: nothing is predicted from it, and a rollout engine
    that stops there has not routed it.
    """
    if isinstance(routes, Traces):
        fed_N = (lengths_N - 1).tolist()
        return sum(map(_missing, routes.of_sequences, fed_N))
    missing_NT = (routes == MISSING_ROUTE).any(dim=3).any(dim=2)
    fed_NT = torch.arange(missing_NT.shape[1]) < lengths_N[:, None] - 1
    return int((missing_NT & fed_NT).sum())


def _missing(recorded_TLK: NDArray[np.uint8 | np.int16] | None, fed: int) -> int:
    """Count the missing rows of one sequence; uint8 has none but those behind its end."""
    if recorded_TLK is None:
        return fed
    known_TLK = recorded_TLK[:fed]
    missing = fed - len(known_TLK)
    if known_TLK.dtype == np.uint8:
        return missing
    return missing + int((known_TLK == MISSING_ROUTE).any(axis=(1, 2)).sum())


def disagreement(native_MLK: torch.Tensor, recorded_MLK: torch.Tensor) -> float:
    """Share of (token, layer) choices whose expert sets differ; missing rows do not count.

    Returns 0.0 when no row is recorded.
    """
    other_ML, present_ML = _other_choices(native_MLK, recorded_MLK)
    return float(other_ML.sum().double() / present_ML.sum().clamp(min=1))


def disagreement_by_layer(native_MLK: torch.Tensor, recorded_MLK: torch.Tensor) -> list[float]:
    """Return that share of every layer; 0.0 for one of which no row is recorded."""
    other_ML, present_ML = _other_choices(native_MLK, recorded_MLK)
    return (other_ML.sum(dim=0).double() / present_ML.sum(dim=0).clamp(min=1)).tolist()


def _other_choices(
    native_MLK: torch.Tensor, recorded_MLK: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mark the (token, layer) choices that are recorded and differ, and those recorded."""
    present_ML = (recorded_MLK != MISSING_ROUTE).all(dim=2)
    same_ML = (native_MLK.sort(dim=2).values == recorded_MLK.sort(dim=2).values).all(dim=2)
    return ~same_ML & present_ML, present_ML
