"""What a rollout engine and a trainer promise.

Letters: N sequences, T tokens (prompt and response, right-padded), L MoE layers,
K experts per token.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rl_settings import AuxiliarySettings
from data_schemas.rollouts import Rollout


def _no_tokens() -> NDArray[np.int32]:
    return np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw tokens. The same seed, requests and weights give the same tokens."""

    max_new_tokens: int
    """Of a whole response: what a request brings along counts."""
    temperature: float
    """0 is greedy; log-probabilities are then those of temperature 1."""
    seed: int
    record_routes: bool = True
    segment_tokens: int = 0
    """Stop after this many new tokens with StopReason.SEGMENT; 0 = go on to the end."""


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
    """Generated earlier: every sample goes on behind them."""
    expected_tokens: float = 1.0
    """Predicted length of a response: what requests are spread over several engines by."""


@dataclass(frozen=True, slots=True)
class EngineCounters:
    """What an engine has done since it was opened. Tokens are those of finished rollouts."""

    sequences: int = 0
    """Rollouts yielded."""
    generated_tokens: int = 0
    """Sum of their response tokens: the new ones."""
    prompt_tokens: int = 0
    """Prefilled: prompt and earlier response, once per request, not per sample."""
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0


class RolloutEngine(Protocol):
    """Answers prompts with one known version of the policy.

    Contract, checked on every engine: log-probabilities are those of the sampling
    distribution; the router trace has one row per fed token; the same seed gives the
    same tokens whatever else is in the batch and whatever the order of the requests;
    every request comes back exactly `num_samples` times. So far as the order of sums allows:
    a tie of two tokens within rounding may fall either way in another batch.

    What differs: the embedded engine draws a token by its place, so the parts of a response
    join to exactly what it would have been in one go. vLLM's random stream starts anew with
    every request: a response that goes on does so in the same way each time, and from the
    right distribution, but the tokens depend on where it was cut. A weight sync that does not
    fit leaves the embedded engine, and vLLM in a process of its own, as they were; vLLM in
    this process takes tensors as they come, and computes nothing until a whole one has come.
    """

    @property
    def policy_version(self) -> int: ...

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer, to check recorded routes against; 0 without a router."""
        ...

    @property
    def slots(self) -> int:
        """How many sequences decode at once."""
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

        They come from the installed weights in the engine's own numbers: compared with the
        trainer's they show a weight sync that went wrong.
        """
        ...

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Install new weights under Hugging Face names; return the digest of what was received.

        What was installed equals what was received, cast to the engine's numbers.

        Raises:
            EngineError: a tensor is missing, unknown or of the wrong shape.
        """
        ...

    def sleep(self) -> None:
        """Give the GPU's memory to others until the next call, which takes it back by itself."""
        ...

    def close(self) -> None:
        """Free everything; the engine cannot be used any more."""
        ...


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Right-padded sequences as a trainer eats them. Integer tensors are int64, routes int16."""

    tokens_NT: torch.Tensor
    lengths_N: torch.Tensor
    response_NT: torch.Tensor
    """bool: True where the token at this position was generated (so it has a log-prob)."""
    experts_NTLK: torch.Tensor | None
    """int16, row t routes token t; all-MISSING_ROUTE rows use the native router. Trainers widen a
    micro-batch at a time: of all that a batch holds this is by far the most."""
    columns: Mapping[str, torch.Tensor]
    """What the loss needs beside: [N, T] or [N] tensors (advantages_NT, ...)."""

    @property
    def route_shape(self) -> tuple[int, int] | None:
        """MoE layers and experts per token; None without routes."""
        if self.experts_NTLK is None:
            return None
        return self.experts_NTLK.shape[2], self.experts_NTLK.shape[3]

    def select(self, rows: torch.Tensor, layers: Sequence[int] | None = None) -> "TokenBatch":
        """Some of the sequences, cut to the longest of them.

        Args:
            rows: numbers of the sequences.
            layers: MoE layers whose routes are kept; None keeps all.
        """
        width = int(self.lengths_N[rows].max()) if len(rows) else 0
        experts_NTLK = self.experts_NTLK
        if experts_NTLK is not None:
            experts_NTLK = _routes(experts_NTLK, rows, width, layers)
        return TokenBatch(
            tokens_NT=self.tokens_NT[rows, :width],
            lengths_N=self.lengths_N[rows],
            response_NT=self.response_NT[rows, :width],
            experts_NTLK=experts_NTLK,
            columns={
                name: column[rows, :width] if column.ndim == 2 else column[rows]
                for name, column in self.columns.items()
            },
        )


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
    """One forward pass. Zero outside response_NT."""

    logprobs_NT: torch.Tensor
    entropy_NT: torch.Tensor
    """Full-vocabulary entropy in nats at the sampling temperature."""
    experts_NTLK: torch.Tensor | None
    """Native top-k choices, when asked for."""


LossFn = Callable[[torch.Tensor, TokenBatch], tuple[torch.Tensor, dict[str, float]]]
"""(logprobs_NT with gradient, micro-batch) -> (loss, metrics), both scaled so that those of
the micro-batches add up to those of the mini-batch."""

NO_AUXILIARY = AuxiliarySettings()


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
        auxiliary: AuxiliarySettings = NO_AUXILIARY,
    ) -> dict[str, float]:
        """One optimizer step on the whole batch; returns summed metrics and 'grad_norm'.

        Args:
            auxiliary: what the trainer adds to the loss from distributions and routers it
                alone sees (entropy, balance, router_z); `kl` is the loss function's. What
                is on comes back as 'auxiliary/entropy_nats', '.../balance', '.../router_z'.
        """
        ...

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The policy's tensors under Hugging Face names."""
        ...

    def save(self, folder: Path) -> None:
        """Write all that the next update depends on (weights, optimizer)."""
        ...

    def restore(self, folder: Path) -> None:
        """Take up exactly where `save` left off.

        Raises:
            DataError: the folder was written by another architecture.
        """
        ...

    def export(self, folder: Path) -> None:
        """Write the policy as a Hugging Face directory with its tokenizer."""
        ...

    def close(self) -> None:
        """Free everything; the trainer cannot be used any more."""
        ...
