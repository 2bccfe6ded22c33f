# pyright: reportMissingImports=false
"""What the two placements of vLLM have in common: one call per sample, one weight update."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vllm import RequestOutput, SamplingParams

from tasks.engines.rollout_vllm.staging import files_of


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

    @property
    def leads(self) -> bool:
        """Whether this process writes the weights of its replica."""
        ...

    def run(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Yield every call's number and answer as it ends; leaving early aborts the others.

        Raises:
            EngineError: vLLM failed, and starting it again did not help.
        """
        ...

    def agreed(self, folder: Path | None) -> Path:
        """Return the leader's folder to every process of the replica."""
        ...

    def install(self, folder: Path) -> str:
        """Update to a model directory's weights; return the digest of what workers read there.

        Raises:
            EngineError: calls are still running, or the update failed.
        """
        ...

    def rest(self) -> None:
        """Free GPU memory until the next call."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


def update_steps(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return vLLM's update of all workers as calls: names and keyword arguments, in order."""
    chunks = [{"update_info": {"path": str(path)}} for path in files_of(folder)]
    return [
        ("start_weight_update", {}),
        *(("update_weights", chunk) for chunk in chunks),
        ("finish_weight_update", {}),
    ]
