"""Steps that the simulator predicts, against published ones that nothing in it was fitted to.

    python -m tests.bench.published_steps

NeMo RL's on-policy GRPO on OpenMathInstruct-2, H100s, bf16, Megatron-core
(github.com/NVIDIA-NeMo/RL, docs/about/performance-summary.md, v0.4): layouts, numbers of GPUs and
responses, mean lengths and seconds of a step are published. Its DeepSeek-V3 has latent attention,
which no budget counts, and the runs that are a step ahead do not say how GPUs are divided.

Assumed: 32 responses a prompt, prompts of 128 tokens, engines with 0.6 of a GPU, no recomputation
but for the 235B model (with 96 layers for its 94, which its eight stages do not divide),
micro-batches of one longest sequence, lengths that are log-normal and cut at the limit.
Their weight sync hashes nothing and stays on the GPUs; no step commits a state, and no process has
the routes of all responses pass through it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.capacity.memory import Work
from tasks.capacity.model_shape import ModelShape
from tasks.capacity.plan import Plan
from tasks.capacity.simulation.rates import Efficiency, rates_of
from tasks.capacity.simulation.steps import Batch, Draw, Outcome, Policy, Simulation, assumed
from tasks.platform.command_line import run

PROMPT = 128
GROUP = 32
UNHASHED = Efficiency(
    hash_bytes_s=math.inf,
    host_bytes_s=math.inf,
    disk_bytes_s=math.inf,
    rank_zero_s=0.0,
    rank_zero_byte_s=0.0,
)
TRAINED = 512
"""Responses of an update (T-GBS)."""


@dataclass(frozen=True, slots=True)
class Published:
    """One row of the table."""

    name: str
    model: ModelShape
    gpus: int
    responses: int
    longest: int
    mean: int
    """Tokens of a sequence, prompt included."""
    layout: LayoutSettings
    seconds: float


def _layout(tensor: int, context: int, expert: int, pipeline: int, rollout: int, longest: int):
    return LayoutSettings(
        tensor=tensor,
        context=context,
        expert=expert,
        pipeline=pipeline,
        recompute=pipeline == 8,
        micro_batch_tokens=longest,
        rollout_tensor=rollout,
        rollout_memory=0.6,
        precision=Precision.BF16,
    )


LLAMA_8B = ModelShape(32, 4096, 32, 8, 128, 128_256, 14_336, head_norms=False)
QWEN_30B = ModelShape(48, 2048, 32, 4, 128, 151_936, 768, experts=128, experts_per_token=8)
QWEN_32B = ModelShape(64, 5120, 64, 8, 128, 151_936, 25_600)
QWEN_235B = ModelShape(96, 4096, 64, 4, 128, 151_936, 1536, experts=128, experts_per_token=8)
RUNS = (
    Published(
        "Llama 3.1 8B", LLAMA_8B, 16, 2048, 4096, 1060, _layout(1, 1, 1, 2, 1, 4096), seconds=97.7
    ),
    Published(
        "Qwen3-30B-A3B", QWEN_30B, 32, 2048, 4096, 3154, _layout(2, 1, 8, 1, 4, 4096), seconds=225.0
    ),
    Published(
        "Qwen3-32B", QWEN_32B, 32, 2048, 4096, 3206, _layout(4, 1, 1, 4, 4, 4096), seconds=393.0
    ),
    Published(
        "Qwen3-235B-A22B",
        QWEN_235B,
        128,
        512,
        8192,
        5671,
        _layout(2, 2, 16, 8, 16, 8192),
        seconds=506.0,
    ),
)


def predict(one: Published, steps: int = 2) -> Outcome:
    """Simulate a step: responses are dealt at once, as they were drawn."""
    limit = one.longest - PROMPT
    plan = Plan(
        one.name,
        one.model,
        one.layout,
        Precision.BF16,
        Work(PROMPT, limit, one.responses),
        one.gpus,
        group_size=GROUP,
        mini_batches=max(1, one.responses // TRAINED),
    )
    batch = Batch(one.responses // GROUP, GROUP, PROMPT, limit)
    simulation = Simulation(
        rates_of(plan, UNHASHED, one.mean),
        batch,
        lengths(limit, one.mean - PROMPT),
        dedicated=False,
    )
    return simulation.run(Policy(longest_first=False), steps)


def lengths(limit: int, mean: float) -> Draw:
    """Draw from the assumed distribution, moved until its mean is this after the cut."""
    low, high = mean, 50.0 * mean
    for _ in range(30):
        middle = (low + high) / 2
        groups = assumed(limit, middle)(512, GROUP, np.random.default_rng(0))
        is_short = np.mean([group.lengths for group in groups]) < mean
        low, high = (middle, high) if is_short else (low, middle)
    return assumed(limit, high)


def table(runs: Sequence[Published] = RUNS) -> Table:
    """Show both, and the parts of the predicted step."""
    shown = Table(title="Seconds of a step", title_justify="left", title_style="", box=None)
    shown.add_column("run")
    heads = (
        "published",
        "predicted",
        "ratio",
        "rollouts",
        "old log-probs",
        "update",
        "weight sync",
    )
    for head in heads:
        shown.add_column(head, justify="right")
    for one in runs:
        found = predict(one)
        parts = (found.parts[name] for name in ("rollout", "old_logprobs", "update", "weight_sync"))
        ratio = f"{found.seconds / one.seconds:.2f}"
        numbers = (
            f"{one.seconds:.0f}",
            f"{found.seconds:.0f}",
            ratio,
            *(f"{s:.0f}" for s in parts),
        )
        shown.add_row(f"{one.name}, {one.gpus} GPUs", *numbers)
    return shown


def main(_: Sequence[str]) -> None:
    """Predict and print."""
    Console(highlight=False).print(table())


if __name__ == "__main__":
    run(main)
