# pyright: reportMissingImports=false
"""What the two placements of vLLM have in common: one call per sample, one weight update."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from vllm import RequestOutput, SamplingParams


@dataclass(frozen=True, slots=True)
class Call:
    """One sequence for vLLM to go on with."""

    number: int
    """Which of the calls made together."""
    request: int
    """Calls of one request share their prompt, so they go to the same replica."""
    tokens: list[int]
    params: SamplingParams


class Backend(Protocol):
    """vLLM, wherever it runs."""

    @property
    def restarts(self) -> int:
        """How often a new process took the place of one that had died or hung."""
        ...

    @property
    def reissued(self) -> int:
        """Calls that were in flight then, and were made again."""
        ...

    def run(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Yield every call's number and answer as it ends; leaving early aborts the others.

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
