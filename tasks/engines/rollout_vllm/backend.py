# pyright: reportMissingImports=false
"""The interface shared by in-process and separate vLLM: calls per sample, and weight updates."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from vllm import RequestOutput, SamplingParams


@dataclass(frozen=True, slots=True)
class Call:
    """One sequence for vLLM to continue."""

    number: int
    """Index among the calls made together."""
    request: int
    """Calls of one request share their prompt, so they are sent to the same replica."""
    tokens: list[int]
    params: SamplingParams
    expected_tokens: float = 1.0
    """Predicted length of what it generates."""


More = Callable[[], Sequence[Call] | None]
"""Returns further calls; None once there are no more."""


class Backend(Protocol):
    """vLLM in this or in a separate process."""

    @property
    def restarts(self) -> int:
        """Number of restarts after a process had died or hung."""
        ...

    @property
    def reissued(self) -> int:
        """Number of calls that were in flight at a restart and were issued again."""
        ...

    @property
    def cache_tokens(self) -> int:
        """Tokens that the KV cache of one engine holds."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest sequence that its cache holds; at most the model's positions."""
        ...

    def run(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Yield every call's number and output as it ends; closing the generator aborts the others.

        Raises:
            EngineError: vLLM failed, and starting it again did not help.
        """
        ...

    def install(self, weights: Iterator[tuple[str, torch.Tensor]]) -> str:
        """Update to these weights; return the digest of what the workers received.

        Raises:
            EngineError: calls are still running, the tensors do not fit, or the update failed.
        """
        ...

    def sleep(self) -> None:
        """Free GPU memory until the next call."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...
