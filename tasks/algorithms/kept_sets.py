"""Sampling replay: the sets that truncated sampling drew from, for a trainer to renormalise over.

With top-p or top-k the engine draws from its distribution restricted to a set K of tokens. The
policy ratio is then one of restricted distributions, with the recorded K:

    log pi_K(y) = z_y - logsumexp over K of z

Without it engines of equal weights have the ratio p(K), the kept mass, at every token. A trainer
does not derive K: its own rounding moves the boundary.

Source: DeepSeek-V3.2 (arXiv 2512.02556, section 3.1), "keep sampling mask".

Letters: N sequences, T tokens, R response tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rollouts import KeptSets
from tasks.errors import DataError


@dataclass(frozen=True, slots=True)
class KeptTokens:
    """Recorded sets of some rows, end to end in their order."""

    ids: torch.Tensor
    """int32"""
    counts_R: torch.Tensor
    """int64, size of every set; 0 where nothing was drawn."""

    def take(self, rows: torch.Tensor) -> "KeptTokens":
        """Select the sets of some rows."""
        first_R, counts = self.counts_R.cumsum(0) - self.counts_R, self.counts_R[rows]
        shift = first_R[rows] - (counts.cumsum(0) - counts)
        places = torch.arange(int(counts.sum())) + shift.repeat_interleave(counts)
        return KeptTokens(self.ids[places], counts)

    def outside(
        self, part: slice, columns: int, device: torch.device, *, first: int = 0
    ) -> torch.Tensor:
        """Mark the columns that are outside of the sets of some rows: bool [R, V].

        Args:
            part: of the rows [R].
            columns: of the vocabulary.
            device: of the mask.
            first: token of the first column.
        """
        counts_R = self.counts_R[part].to(device)
        start = int(self.counts_R[: part.start].sum())
        columns_of = self.ids[start : start + int(counts_R.sum())].to(device, torch.int64) - first
        rows = torch.arange(len(counts_R), device=device).repeat_interleave(counts_R)
        inside = (columns_of >= 0) & (columns_of < columns)
        outside_RV = torch.ones(len(counts_R), columns, dtype=torch.bool, device=device)
        outside_RV[rows[inside], columns_of[inside]] = False
        return outside_RV


def sets_of(kept_RV: torch.Tensor) -> list[NDArray[np.int32]]:
    """Return the tokens of every row of a mask."""
    rows, tokens = kept_RV.cpu().nonzero(as_tuple=True)
    ends = np.cumsum(np.bincount(rows.numpy(), minlength=len(kept_RV)))
    return np.split(tokens.numpy().astype(np.int32), ends[:-1])


def end_to_end(sets: Sequence[NDArray[np.int32]]) -> KeptSets:
    """Put the sets of a response end to end."""
    ids = np.concatenate([np.empty(0, np.int32), *sets])
    return KeptSets(ids, np.array([len(one) for one in sets], np.int32))


def nothing_kept(num_tokens: int) -> KeptSets:
    """Return the empty sets of tokens that were not drawn, such as an environment's."""
    return KeptSets(np.empty(0, np.int32), np.zeros(num_tokens, np.int32))


def join_kept(before: KeptSets | None, after: KeptSets | None) -> KeptSets | None:
    """Join the sets of two parts of a response; None if neither was drawn from sets."""
    if before is None or after is None:
        return before or after
    return KeptSets(
        np.concatenate([before.ids, after.ids]), np.concatenate([before.counts, after.counts])
    )


def kept_behind(prompt: int, sets: KeptSets) -> KeptTokens:
    """Return the sets of a whole sequence; those of the tokens of its prompt are empty."""
    counts_T = np.pad(sets.counts, (prompt, 0)).astype(np.int64)
    return KeptTokens(torch.from_numpy(sets.ids), torch.from_numpy(counts_T))


def kept_at(kept_N: Sequence[KeptTokens], mask_NT: torch.Tensor) -> KeptTokens:
    """Return the sets of the marked positions of some sequences, in the order of the mask."""
    row_sets = [one.take(row_T.nonzero()[:, 0]) for one, row_T in zip(kept_N, mask_NT, strict=True)]
    nothing = KeptTokens(torch.empty(0, dtype=torch.int32), torch.empty(0, dtype=torch.int64))
    parts = [nothing, *row_sets]
    return KeptTokens(
        torch.cat([one.ids for one in parts]), torch.cat([one.counts_R for one in parts])
    )


def check_kept(
    sets: KeptSets, tokens_R: NDArray[np.int32], sampled_R: NDArray[np.bool_] | None
) -> None:
    """Reject sets that cannot be those of a response. None is repaired: it would be another set.

    Raises:
        DataError: a sampled token without a set or outside of it, a set of a token that was not
            sampled, or sets that are not in ascending order.
    """
    sampled_R = np.ones(len(tokens_R), np.bool_) if sampled_R is None else sampled_R
    if len(sets.counts) != len(tokens_R) or int(sets.counts.sum()) != len(sets.ids):
        raise DataError(
            f"{len(sets.counts)} sets with {len(sets.ids)} tokens do not fit {len(tokens_R)} tokens"
        )
    wrong = np.flatnonzero((sets.counts > 0) != sampled_R)
    if len(wrong):
        raise DataError(f"response token {wrong[0]} has {sets.counts[wrong[0]]} tokens in its set")
    rows = np.repeat(np.arange(len(tokens_R)), sets.counts)
    if (np.diff(sets.ids) <= 0)[rows[1:] == rows[:-1]].any() or (sets.ids < 0).any():
        raise DataError("the tokens of a set are not in ascending order")
    has = np.zeros(len(tokens_R), np.bool_)
    has[rows[sets.ids == tokens_R[rows]]] = True
    missing = np.flatnonzero(sampled_R & ~has)
    if len(missing):
        raise DataError(f"response token {missing[0]} is not in the set that it was drawn from")
