"""What a rollout engine and a trainer promise.

Letters: N sequences, T tokens (prompt and response, right-padded), L MoE layers,
K experts per token.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rollouts import Rollout


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw tokens. The same seed, prompts and weights give the same tokens."""

    max_new_tokens: int
    temperature: float
    """0 is greedy; log-probabilities are then those of temperature 1."""
    seed: int
    record_routes: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt, answered `num_samples` times."""

    problem_id: str
    prompt_tokens: NDArray[np.int32]
    num_samples: int


class RolloutEngine(Protocol):
    """Answers prompts with one known version of the policy.

    Contract, checked on every engine: log-probabilities are those of the sampling
    distribution; the router trace has one row per fed token; the same seed gives the
    same tokens; every request comes back exactly `num_samples` times.
    """

    @property
    def policy_version(self) -> int: ...

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer, to check recorded routes against; 0 without a router."""
        ...

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        """Yield rollouts as they finish, in any order."""
        ...

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Install new weights under Hugging Face names and return their digest.

        Raises:
            EngineError: a tensor is missing, unknown or of the wrong shape.
        """
        ...


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Right-padded sequences as a trainer eats them. Integer tensors are int64."""

    tokens_NT: torch.Tensor
    lengths_N: torch.Tensor
    response_NT: torch.Tensor
    """bool: True where the token at this position was generated (so it has a log-prob)."""
    experts_NTLK: torch.Tensor | None
    """int64, row t routes token t; all-MISSING_ROUTE rows use the native router."""
    columns: Mapping[str, torch.Tensor]
    """What the loss needs beside: [N, T] or [N] tensors (advantages_NT, ...)."""

    def select(self, rows: torch.Tensor) -> "TokenBatch":
        """Some of the sequences, cut to the longest of them."""
        width = int(self.lengths_N[rows].max()) if len(rows) else 0
        return TokenBatch(
            tokens_NT=self.tokens_NT[rows, :width],
            lengths_N=self.lengths_N[rows],
            response_NT=self.response_NT[rows, :width],
            experts_NTLK=None if self.experts_NTLK is None else self.experts_NTLK[rows, :width],
            columns={
                name: column[rows, :width] if column.ndim == 2 else column[rows]
                for name, column in self.columns.items()
            },
        )


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


class Trainer(Protocol):
    """Holds the policy and its optimizer; receives the loss as a function."""

    def score(self, batch: TokenBatch, *, temperature: float, record_routes: bool) -> TokenScores:
        """Log-probabilities and entropies without gradient."""
        ...

    def update(
        self, batch: TokenBatch, loss: LossFn, *, temperature: float, learning_rate: float
    ) -> dict[str, float]:
        """One optimizer step on the whole batch; returns summed metrics and 'grad_norm'."""
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
