"""Interfaces of rollout engines and trainers.

Letters: N sequences, T tokens (prompt and response, right-padded), L MoE layers,
K experts per token.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rollouts import Rollout
from tasks.algorithms.kept_sets import KeptTokens, kept_at
from tasks.algorithms.packing import Prefixes, common_prefixes, pad_rows
from tasks.algorithms.routing import Traces
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.errors import SettingsError


def _no_tokens() -> NDArray[np.int32]:
    return np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters. The same seed, requests and weights give the same tokens."""

    max_new_tokens: int
    """Limit of a whole response, including the response tokens of a request."""
    temperature: float
    """0 is greedy; log-probabilities are then those of temperature 1."""
    seed: int
    record_routes: bool = True
    segment_tokens: int = 0
    """Stop after this many new tokens with StopReason.SEGMENT; 0 = no limit."""
    enough: int = 0
    """Stop when all responses to so many prompts, and to those that are due, have ended: live ones
    are cut with StopReason.SEGMENT, waiting ones yield nothing; 0 = never. Not in engines that are
    processes of their own, whose steps are not counted."""
    top_p: float = 1.0
    """Probability mass of the likeliest tokens that are kept; 1 = all. Log-probabilities are those
    of the truncated distribution."""
    min_p: float = 0.0
    """Tokens below this share of the likeliest token's probability are excluded; 0 = none."""
    top_k: int = 0
    """So many likeliest tokens are kept, and those that tie with the last of them; 0 = all."""
    record_kept: bool = False
    """Record the set that each token was drawn from, for a trainer that renormalises over it."""
    stop: tuple[str, ...] = ()
    """A response ends with StopReason.STOP when its text contains one of these, which it keeps."""

    def __post_init__(self) -> None:
        """Refuse what no engine does: a stop string may begin in an earlier segment."""
        if self.stop and (self.segment_tokens or self.enough):
            raise SettingsError(
                "stop strings do not end a response that is generated in segments; "
                "set engines.segment_tokens to 0"
            )


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt, answered `num_samples` times.

    Samples are numbered from `first_sample`; (problem_id, sample) must be unique in a call,
    because the random stream of a sequence is keyed on it.
    """

    problem_id: str
    prompt_tokens: NDArray[np.int32]
    num_samples: int
    first_sample: int = 0
    response_tokens: NDArray[np.int32] = field(default_factory=_no_tokens)
    """Generated earlier: every sample continues after them."""
    expected_tokens: float = 1.0
    """Predicted length of a response, used to balance requests over several engines."""
    due: bool = False
    """Has to end in this call, whatever `Sampling.enough` says."""


@dataclass(frozen=True, slots=True)
class EngineCounters:
    """Counters of an engine since it was opened. Tokens are those of finished rollouts."""

    sequences: int = 0
    """Rollouts yielded."""
    generated_tokens: int = 0
    """Sum of their response tokens."""
    prompt_tokens: int = 0
    """Prefilled: prompt and earlier response, once per request, not per sample."""
    preemptions: int = 0
    """Times that a sequence lost its cache to others and was prefilled again, with what it had."""
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0


class RolloutEngine(Protocol):
    """Generates responses with one known version of the policy.

    Contract, checked on every engine: log-probabilities are those of the sampling
    distribution; the router trace has one row per fed token; the same seed gives the
    same tokens whatever else is in the batch and whatever the order of the requests;
    every request yields exactly `num_samples` rollouts, unless `Sampling.enough` ends the call.
    Results are the same up to the order of summation: two tokens that tie within rounding may be
    exchanged in another batch.

    Differences: the embedded engine samples a token by its position, so the segments of a
    response are exactly those of one uninterrupted request. vLLM's random stream restarts with
    every request: a continued response is reproducible and from the right distribution, but its
    tokens depend on where it was cut. A weight sync with unsuitable tensors leaves the embedded
    engine, and vLLM in a separate process, unchanged; vLLM in this process installs tensors as
    they arrive and refuses to generate until a sync is complete.
    """

    @property
    def policy_version(self) -> int: ...

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer, to check recorded routes against; 0 without a router."""
        ...

    def slots(self, tokens: float) -> int:
        """Number of sequences of so many tokens, prompt included, that are decoded concurrently."""
        ...

    @property
    def counters(self) -> EngineCounters:
        """Work done so far, for conservation checks of a ledger."""
        ...

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        """Start requests in the order given as slots free up; yield each rollout as it ends.

        A request with `response_tokens` yields the new tokens and log-probabilities only,
        with the trace of all fed tokens: prompt, earlier response and new ones but the last.
        """
        ...

    def score_logprobs(self, tokens: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        """Log-probabilities (temperature 1) of tokens 1..T-1 of every sequence.

        They are computed from the installed weights in the engine's own precision: a comparison
        with the trainer's detects a failed weight sync.
        """
        ...

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Install new weights under Hugging Face names; return the digest of what was received.

        The installed tensors equal the received ones, cast to the engine's dtype.

        Raises:
            EngineError: a tensor is missing, unknown or of the wrong shape.
        """
        ...

    def sleep(self) -> None:
        """Release GPU memory until the next weight sync; the weights may be lost."""
        ...

    def close(self) -> None:
        """Free all resources; the engine cannot be used afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Right-padded sequences, the input of a trainer. Integer tensors are int64."""

    tokens_NT: torch.Tensor
    lengths_N: torch.Tensor
    response_NT: torch.Tensor
    """bool: True where the token at this position was generated (so it has a log-prob)."""
    experts_NTLK: torch.Tensor | Traces | None
    """int16, or as recorded; row t routes token t; all-MISSING_ROUTE rows use the native router. By
    far the largest part of a batch, so trainers pad and convert it one micro-batch at a time."""
    columns: Mapping[str, torch.Tensor]
    """Further inputs of the loss: [N, T, ...] or [N] tensors (advantages_NT, ...)."""
    kept_N: tuple[KeptTokens, ...] | None = None
    """Sets that each sequence's tokens were drawn from, over which log-probabilities are; None is
    the whole vocabulary."""

    @classmethod
    def of_sequences(cls, sequences: Sequence[NDArray[np.int32]]) -> "TokenBatch":
        """All tokens of some sequences but the first of each, as if they had been generated."""
        rows = [torch.from_numpy(sequence.astype(np.int64)) for sequence in sequences]
        masks = [torch.arange(len(row)) > 0 for row in rows]
        return cls(
            tokens_NT=pad_rows(rows, 0),
            lengths_N=torch.tensor([len(row) for row in rows]),
            response_NT=pad_rows(masks, False),
            experts_NTLK=None,
            columns={},
        )

    @property
    def route_shape(self) -> tuple[int, int] | None:
        """MoE layers and experts per token; None without routes."""
        routes = self.experts_NTLK
        if isinstance(routes, Traces):
            return routes.num_layers, routes.k
        return None if routes is None else (routes.shape[2], routes.shape[3])

    @property
    def padded_routes_NTLK(self) -> torch.Tensor | None:
        """Routes as one tensor; recorded ones are copied."""
        routes = self.experts_NTLK
        return routes.padded(self.tokens_NT.shape[1]) if isinstance(routes, Traces) else routes

    @property
    def real_NT(self) -> torch.Tensor:
        """bool: True where there is a token."""
        return torch.arange(self.tokens_NT.shape[1]) < self.lengths_N[:, None]

    @property
    def at(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sequence and position of every response token."""
        sequence_R, position_R = self.response_NT.nonzero(as_tuple=True)
        return sequence_R, position_R

    @property
    def tokens_R(self) -> torch.Tensor:
        """Response tokens, sequence after sequence."""
        return self.tokens_NT[self.at]

    @property
    def kept_R(self) -> KeptTokens | None:
        """Sets of the response tokens, sequence after sequence."""
        return None if self.kept_N is None else kept_at(self.kept_N, self.response_NT)

    @property
    def alone_NT(self) -> torch.Tensor:
        """Mark the response tokens that were alone in their set: their gradient is 0."""
        alone_NT, kept_R = torch.zeros_like(self.response_NT), self.kept_R
        if kept_R is not None:
            alone_NT[self.response_NT] = kept_R.counts_R == 1
        return alone_NT

    @property
    def prefixes(self) -> Prefixes:
        """Common prefixes of the sequences, in tokens and routes; computed by every call."""
        routes = self.experts_NTLK
        return common_prefixes(
            self.tokens_NT.numpy(),
            self.lengths_N.numpy(),
            None if routes is None else partial(_first_routes, routes),
        )

    def select(self, rows: torch.Tensor, layers: Sequence[int] | None = None) -> "TokenBatch":
        """Select sequences, cut to the longest of them.

        Args:
            rows: numbers of the sequences.
            layers: MoE layers whose routes are kept; None keeps all.
        """
        width = int(self.lengths_N[rows].max()) if len(rows) else 0
        experts_NTLK = self.experts_NTLK
        if isinstance(experts_NTLK, Traces):
            experts_NTLK = experts_NTLK.select(rows.tolist(), width, layers)
        elif experts_NTLK is not None:
            experts_NTLK = _routes(experts_NTLK, rows, width, layers)
        return TokenBatch(
            tokens_NT=self.tokens_NT[rows, :width],
            lengths_N=self.lengths_N[rows],
            response_NT=self.response_NT[rows, :width],
            experts_NTLK=experts_NTLK,
            columns={
                name: column[rows, :width] if column.ndim > 1 else column[rows]
                for name, column in self.columns.items()
            },
            kept_N=None if self.kept_N is None else tuple(self.kept_N[row] for row in rows),
        )


def _first_routes(routes: torch.Tensor | Traces, sequence: int, rows: int) -> NDArray[np.integer]:
    """The routes of a sequence's first tokens, a row each."""
    if isinstance(routes, Traces):
        first_TLK = routes.first(sequence, rows)
        return first_TLK.reshape(rows, routes.num_layers * routes.k)
    return routes[sequence, :rows].flatten(1).numpy()


def _routes(
    experts_NTLK: torch.Tensor, rows: torch.Tensor, width: int, layers: Sequence[int] | None
) -> torch.Tensor:
    """Copy the routes of some sequences and layers once: they may be tens of GB."""
    if layers is None:
        return experts_NTLK[rows, :width]
    chosen_L = torch.tensor(layers, dtype=torch.int64)
    kept_NTLK = experts_NTLK.new_empty(len(rows), width, len(layers), experts_NTLK.shape[3])
    for kept_TLK, row in zip(kept_NTLK, rows.tolist(), strict=True):
        torch.index_select(experts_NTLK[row, :width], 1, chosen_L, out=kept_TLK)
    return kept_NTLK


@dataclass(frozen=True, slots=True)
class TokenScores:
    """One forward pass. Zero outside response_NT. Log-probabilities are over the batch's sets."""

    logprobs_NT: torch.Tensor
    entropy_NT: torch.Tensor
    """Full-vocabulary entropy in nats at the sampling temperature."""
    experts_NTLK: torch.Tensor | None
    """Native top-k choices, if `record_routes`."""


LossFn = Callable[[torch.Tensor, TokenBatch], tuple[torch.Tensor, dict[str, float]]]
"""(logprobs_NT with gradient, micro-batch) -> (loss, metrics), both scaled so that those of
the micro-batches add up to those of the mini-batch."""
PACKED_ROWS, PADDING_ROWS = "packed_rows", "padding_rows"
"""Metrics of an update: rows of its forward passes, of which a shared token has one, and those of
them that belong to no token."""

NO_AUXILIARY = Auxiliary()


@runtime_checkable
class RouterScorer(Protocol):
    """A trainer that scores experts, and whose `update` adds SHIFT to a batch with OLD_SCORES."""

    def router_scores(self, batch: TokenBatch) -> torch.Tensor:
        """Log scores [N, T, L, K] of the batch's experts that predict each response token."""
        ...


@runtime_checkable
class StateReader(Protocol):
    """A trainer that shows the policy's hidden states."""

    def hidden_states(self, batch: TokenBatch) -> list[torch.Tensor]:
        """Last hidden states, float32: for each sequence the row that predicts each response token.

        They are those that the output layer multiplies, after the last norm.
        """
        ...


class Trainer(Protocol):
    """Holds the policy and its optimizer; receives the loss as a function."""

    def score(self, batch: TokenBatch, *, temperature: float, record_routes: bool) -> TokenScores:
        """Log-probabilities and entropies without gradient."""
        ...

    def update(
        self,
        batch: TokenBatch,
        loss: LossFn,
        *,
        temperature: float,
        learning_rate: float,
        auxiliary: Auxiliary = NO_AUXILIARY,
    ) -> dict[str, float]:
        """One optimizer step on the whole batch; returns summed metrics and 'grad_norm'.

        PACKED_ROWS and PADDING_ROWS are among them.

        Args:
            auxiliary: terms that the trainer adds to the loss, because only it has the logits
                (entropy, balance, router_z); `kl` is computed by the loss function. Enabled
                terms are returned as 'auxiliary/entropy_nats', '.../balance', '.../router_z'.
        """
        ...

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The policy's tensors under Hugging Face names."""
        ...

    def save(self, folder: Path) -> None:
        """Write everything the next update depends on (weights, optimizer)."""
        ...

    def restore(self, folder: Path) -> None:
        """Restore exactly the state that `save` wrote.

        Raises:
            DataError: the folder was written by another architecture.
        """
        ...

    def export(self, folder: Path) -> None:
        """Write the policy as a Hugging Face directory with its tokenizer."""
        ...

    def close(self) -> None:
        """Free all resources; the trainer cannot be used afterwards."""
        ...
