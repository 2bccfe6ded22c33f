"""Steps and weight syncs that the simulator predicts, against published ones not fitted to.

    python -m tests.bench.published_steps

NeMo RL's on-policy GRPO on OpenMathInstruct-2, H100s, bf16, Megatron-core
(github.com/NVIDIA-NeMo/RL, docs/about/performance-summary.md, v0.4): layouts, numbers of GPUs and
responses, mean lengths and seconds of a step are published. Its DeepSeek-V3 has latent attention,
which no budget counts, and the runs that are a step ahead do not say how GPUs are divided.

Assumed: 32 responses a prompt, prompts of 128 tokens, engines with 0.6 of a GPU, no recomputation
but for the 235B model (with 96 layers for its 94, which its eight stages do not divide),
micro-batches of one longest sequence, lengths that are log-normal and cut at the limit.
Their weight sync hashes nothing and stays on the GPUs, and their engines load its tensors without
vLLM's update path, in the CPU seconds that were measured here (sync_cost.json, `direct`); no step
commits a state, and no process has the routes of all responses pass through it.

verl's GRPO of Qwen3-30B-A3B-Base on 128 H20s (github.com/verl-project/verl,
docs/advance/fully_async.md, "Colocate Sync"): batch, limits, and seconds of a step and of four of
its parts are published, the mean length is not. It is taken from their old log-probabilities, which
therefore agree by construction; the other parts are predicted. The layout is that of their script
for the same model (grpo_30b_a3b_base_math_megatron_96_32.sh); the reference model's pass is one
more scoring pass.
"""

import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.capacity.memory import Workload
from tasks.capacity.model_shape import ModelShape
from tasks.capacity.plan import Plan
from tasks.lab.simulator.lengths import Draw, assumed
from tasks.lab.simulator.rates import (
    Efficiency,
    rates_of,
    sync_seconds,
    trainer_rates,
)
from tasks.lab.simulator.steps import Policy, SimulatedBatch, Simulation, SimulationResult
from tasks.platform.command_line import run

PROMPT = 128
GROUP = 32
SYNC_COST = json.loads(Path(__file__).with_name("sync_cost.json").read_bytes())["cpu_s_a_tensor"]
UNHASHED = Efficiency(
    tensor_s=SYNC_COST["direct"]["thread"],
    hash_bytes_s=math.inf,
    host_bytes_s=math.inf,
    disk_bytes_s=math.inf,
    rank_zero_s=0.0,
    rank_zero_byte_s=0.0,
)
TRAINED = 512
"""Responses of an update (T-GBS)."""
H20 = replace(UNHASHED, compute=0.4 * 148 / 989, bandwidth=0.396 * 4.0 / 3.35)
"""The same shares of an H20's 148e12 operations and 4.0e12 bytes per second."""


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
    group: int = GROUP
    trained: int = TRAINED
    efficiency: Efficiency = UNHASHED


@dataclass(frozen=True, slots=True)
class PublishedSync:
    """Seconds in which all weights go to the rollout engines."""

    name: str
    model: ModelShape
    gpus: int
    seconds: float
    dedicated: int = 8
    """GPUs per node that only roll out; 0 = all do both."""
    efficiency: Efficiency = UNHASHED


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


VERL_PARTS = {"rollout": 348.05, "old_logprobs": 28.73, "reference": 20.86, "update": 86.27}
"""Parts of the step below, seconds."""
VERL = Published(
    "Qwen3-30B-A3B",
    QWEN_30B,
    128,
    8192,
    PROMPT + 8192,
    0,
    _layout(2, 2, 8, 1, 4, 10_240),
    seconds=497.89,
    group=16,
    trained=2048,
    efficiency=H20,
)
QWEN_235B_94 = replace(QWEN_235B, layers=94)
SYNCS = (
    # verl, verl/checkpoint_engine/README.md: NCCL, 2 trainers and 30 receivers that load nothing.
    PublishedSync(
        "verl, Qwen3-30B-A3B, 2 to 30 H100s",
        QWEN_30B,
        32,
        7.0,
        efficiency=replace(UNHASHED, tensor_s=0.0),
    ),
    # verl, docs/advance/fully_async.md: without its checkpoint engine, with it 4.38 s and 23.70 s.
    PublishedSync("verl, Qwen3-30B-A3B, 16 to 16 H20s", QWEN_30B, 32, 15.76),
    PublishedSync("verl, Qwen3-235B-A22B, 64 to 64 H20s", QWEN_235B_94, 128, 58.57),
    # github.com/vllm-project/vime/issues/175: the loop over the tensors takes 3.0 s of it, SGLang's
    # loading 2.5 s of that.
    PublishedSync("slime, Qwen3-30B-A3B, 8 H200s, colocated", QWEN_30B, 8, 21.0, dedicated=0),
)


def predict(one: Published, steps: int = 2) -> SimulationResult:
    """Simulate a step: responses are dealt at once, as they were drawn."""
    limit = one.longest - PROMPT
    plan = _plan(one)
    batch = SimulatedBatch(one.responses // one.group, one.group, PROMPT, limit)
    simulation = Simulation(
        rates_of(plan, one.efficiency, one.mean),
        batch,
        lengths(limit, one.mean - PROMPT),
        dedicated=False,
    )
    return simulation.run(Policy(longest_first=False), steps)


def _plan(one: Published) -> Plan:
    return Plan(
        one.name,
        one.model,
        one.layout,
        Precision.BF16,
        Workload(PROMPT, one.longest - PROMPT, one.responses),
        one.gpus,
        group_size=one.group,
        mini_batches=max(1, one.responses // one.trained),
    )


def with_mean(one: Published, scoring_s: float) -> Published:
    """Set the mean length at which scoring all sequences takes this long."""
    means = range(PROMPT + 1, one.longest)

    def scoring(mean: int) -> float:
        per_token, _ = trainer_rates(_plan(one), one.efficiency, mean)
        return per_token * mean * one.responses

    return replace(one, mean=means[bisect_left(means, scoring_s, key=scoring)])


def predict_verl() -> tuple[int, dict[str, float]]:
    """Predict verl's step; return the mean tokens of a sequence, and seconds by part and `step`."""
    run = with_mean(VERL, VERL_PARTS["old_logprobs"])
    found = predict(run)
    parts = {name: found.parts[name] for name in ("rollout", "old_logprobs", "update")}
    parts["reference"] = parts["old_logprobs"]
    return run.mean, parts | {"step": found.seconds + parts["reference"]}


def predict_sync(one: PublishedSync, efficiency: Efficiency) -> float:
    """Predict the seconds of a weight sync."""
    layout = LayoutSettings(dedicated_rollout_gpus=one.dedicated, precision=Precision.BF16)
    plan = Plan(
        one.name,
        one.model,
        layout,
        Precision.BF16,
        Workload(PROMPT, 1, 1),
        one.gpus,
        1,
        mini_batches=1,
    )
    return sync_seconds(plan, efficiency)


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


def verl_table() -> Table:
    """Show the parts of verl's step."""
    mean, found = predict_verl()
    shown = Table(
        title=f"verl's step of {VERL.name} on {VERL.gpus} H20s, {mean} tokens a sequence",
        title_justify="left",
        title_style="",
        box=None,
    )
    shown.add_column("part")
    for head in ("published", "predicted", "ratio"):
        shown.add_column(head, justify="right")
    for name, published in (VERL_PARTS | {"step": VERL.seconds}).items():
        seconds = found[name]
        shown.add_row(name, f"{published:.0f}", f"{seconds:.0f}", f"{seconds / published:.2f}")
    return shown


def sync_table(syncs: Sequence[PublishedSync] = SYNCS) -> Table:
    """Show published and predicted weight syncs, and what this project's would take."""
    shown = Table(title="Seconds of a weight sync", title_justify="left", title_style="", box=None)
    shown.add_column("weight sync")
    for head in ("published", "predicted", "ratio", "ours, with digests"):
        shown.add_column(head, justify="right")
    for one in syncs:
        seconds, ours = (predict_sync(one, each) for each in (one.efficiency, Efficiency()))
        ratio = f"{seconds / one.seconds:.2f}"
        shown.add_row(one.name, f"{one.seconds:.1f}", f"{seconds:.1f}", ratio, f"{ours:.1f}")
    return shown


def main(_: Sequence[str]) -> None:
    """Predict and print."""
    console = Console(highlight=False, width=120)
    for each in (table(), verl_table(), sync_table()):
        console.print(each)


if __name__ == "__main__":
    run(main)
