"""What the pipeline takes of one machine, with the engines that run in its own process.

Fitted to one model, SmolLM2-135M-Instruct in fp32 with micro-batches of 1,024 tokens, which took
6.4 GB of memory at its peak; a graphics processor's memory is `memory.py`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tasks.capacity.model_shape import ModelShape

PROCESS = 10**9
"""Python, torch and the rows, bytes."""
WEIGHT = 24
"""Per weight: fp32 weights, gradient, two moments of Adam, and the rollout engine's two copies
during a weight sync."""
LOGIT = 16
"""Per token and entry of the vocabulary: logits, probabilities and their gradients."""
ACTIVATION = 64
"""Per token, layer and hidden unit: what the backward pass needs."""
STORED = 44
"""Per weight: seven models in fp32, and a state of weights and moments with the next one."""
SMALL = 2 * 10**9
"""Memory below which nobody has to be told."""
LEAST_TOKENS = 256
"""Smaller micro-batches hold no response."""
GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd")
BF16_UNITS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Flags of processors that multiply in bf16: x86, x86, Arm."""


class Needs(NamedTuple):
    """Bytes that a training takes."""

    weights: int
    """Memory that does not depend on the micro-batch."""
    micro_batch: int
    disk: int

    @property
    def memory(self) -> int:
        return self.weights + self.micro_batch


def needs(shape: ModelShape, micro_batch_tokens: int) -> Needs:
    """Estimate what training a model takes, all weights, with Adam."""
    per_token = LOGIT * shape.vocabulary + ACTIVATION * shape.layers * shape.hidden
    return Needs(
        weights=PROCESS + WEIGHT * shape.parameters,
        micro_batch=micro_batch_tokens * per_token,
        disk=STORED * shape.parameters,
    )


def notes(needed: Needs, micro_batch_tokens: int, free_memory: int, free_disk: int) -> list[str]:
    """Say what a run takes, and what of it this machine has not free; nothing of a small model.

    Args:
        needed: by `needs`.
        micro_batch_tokens: that it is for.
        free_memory: of this machine, bytes.
        free_disk: where the models are kept, bytes.
    """
    if needed.memory < SMALL:
        return []
    lines = [
        f"training takes about {_gb(needed.memory)} of memory, {_gb(needed.micro_batch)} of it for "
        f"micro-batches of {micro_batch_tokens:,} tokens, and models about {_gb(needed.disk)} of "
        f"disk; {_gb(free_memory)} and {_gb(free_disk)} are free"
    ]
    if needed.memory > free_memory:
        fitting = micro_batch_tokens * (free_memory - needed.weights) // needed.micro_batch
        lines.append(
            "memory is too small: this machine will swap or end the run. "
            + (
                f"Set sft, rl_one and rl_two .engines.layout.micro_batch_tokens to {fitting:,}"
                if fitting >= LEAST_TOKENS
                else "Take a smaller model, or a machine with more"
            )
        )
    if needed.disk > free_disk:
        lines.append("the disk is too small: free some, or name another store with --store")
    return lines


def slow_choices(in_bf16: Sequence[str], flags: frozenset[str], threads: int) -> list[str]:
    """Say what makes embedded engines slow on a processor, measured with SmolLM2-135M-Instruct.

    Args:
        in_bf16: settings that choose bf16.
        flags: what the processor can do; empty = not known, and nothing is said of it.
        threads: that an operation is split into.
    """
    lines: list[str] = []
    if in_bf16 and flags and not flags & BF16_UNITS:
        lines.append(
            f"{', '.join(in_bf16)}: bf16 is 5 to 8 times slower than fp32 on this processor, which "
            "has no unit for it; set fp32"
        )
    if threads > 1:
        lines.append(
            f"OMP_NUM_THREADS is {threads}: two threads took six times the processor time of one; "
            "set it to 1"
        )
    return lines


def processor_flags() -> frozenset[str]:
    """Return what the processor can do, by Linux's names; empty: not known, or a GPU computes."""
    if any(Path(device).exists() for device in GPU_DEVICES):
        return frozenset()
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    lines = (line for line in text.splitlines() if line.lower().startswith(("flags", "features")))
    return frozenset(next(lines, "").split())


def _gb(count: int) -> str:
    return f"{count / 10**9:.1f} GB"
