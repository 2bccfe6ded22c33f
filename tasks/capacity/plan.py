"""Model and layout of a budget, its output on a terminal, and that of one machine."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from rich.table import Table

from data_schemas import presets
from data_schemas.faults import did_you_mean, explain
from data_schemas.machine_settings import LayoutSettings, MachineSettings, Precision
from data_schemas.settings import PipelineSettings
from tasks.algorithms.terms.table import find_terms
from tasks.capacity import model_shape
from tasks.capacity.memory import (
    FIXED_BYTES,
    GIB,
    H100_BYTES,
    Budget,
    Work,
    budget,
    element_bytes,
    route_bytes,
)
from tasks.capacity.model_shape import ModelShape, shape_of
from tasks.errors import SettingsError
from tasks.models.architectures import refuse_foreign_code

# Terminal output of a memory budget, and the shape of a model directory.

HEADROOM = 0.05
"""Smallest free share of a GPU: allocators fragment, and experts are not balanced."""


def read_shape(folder: Path) -> ModelShape:
    """Read the shape of a model directory.

    Raises:
        SettingsError: there is no config.json, or it names code that is not of this project.
        DataError: the model family is not supported.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise SettingsError(
            f"{folder} is neither a preset nor a model directory: it has no config.json"
        )
    refuse_foreign_code(folder)
    return shape_of(json.loads(path.read_text()))


def describe_layout(layout: LayoutSettings, precision: Precision) -> str:
    """Describe a layout and the precision of its rollouts."""
    parts = {
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "expert": layout.expert,
        "context": layout.context,
    }
    divided = " x ".join(f"{name} {size}" for name, size in parts.items() if size > 1) or "whole"
    placement = (
        f"on {layout.dedicated_rollout_gpus} GPUs per node"
        if layout.dedicated_rollout_gpus
        else "colocated"
    )
    return (
        f"trainer {layout.precision.value}: {divided}, recompute "
        f"{'on' if layout.recompute else 'off'}, {layout.micro_batch_tokens:,} tokens per "
        f"micro-batch; rollouts {precision.value}: tensor {layout.rollout_tensor}, {placement}"
    )


def budget_table(plan: "Plan", budget: Budget) -> Table:
    """List the parts of the fullest GPU's memory, their sums by phase, and the disk of states."""
    table = Table(title=plan.title(), title_justify="left", title_style="", box=None)
    table.add_column("")
    table.add_column("bytes", justify="right")
    table.add_column("description", overflow="fold")
    trainer, rollout = budget.trainer, budget.rollout
    longest = rollout.cached_tokens // budget.longest
    lines = [
        ("trainer: weights", trainer.weights, f"pipeline stage {budget.stage}"),
        ("trainer: gradients", trainer.gradients, "fp32, during an update only"),
        ("trainer: optimizer", trainer.optimizer, "divided over data-parallel ranks"),
        ("trainer: reference", trainer.reference, "weights of the reference model, for KL"),
        ("trainer: activations", trainer.activations, "micro-batches in flight"),
        ("trainer: logits", trainer.logits, "one micro-batch, fp32"),
        (
            "trainer: weight sync",
            trainer.weight_sync,
            "largest tensor, or piece, and its copy",
        ),
        ("rollout: weights", rollout.weights, "one GPU of an engine"),
        (
            "rollout: working set",
            rollout.working + rollout.routes,
            "one pass, with its routes",
        ),
        (
            "rollout: cache",
            rollout.cache,
            f"{rollout.cached_tokens:,} tokens per engine, {longest} sequences of full length",
        ),
        ("rollout: weight sync", rollout.receiving, "experts of a layer, until all are there"),
        ("fixed", FIXED_BYTES, "assumed: contexts, communication, workspaces"),
        *((f"while: {name}", size, "") for name, size in budget.phases.items()),
        ("GPU", budget.gpu, describe_fit(budget)),
        ("host: routes", rollout.host_routes, "all tokens in the cache, in host memory"),
        ("disk: states", plan.states_on_disk, "two are kept while another is written"),
        (
            "disk: rollouts",
            plan.rollouts_on_disk,
            "a step's, at most, until it is committed: as they end, and as a whole",
        ),
    ]
    for name, size, meaning in lines:
        if name.endswith("reference") and not size:
            continue
        style = "bold" if name.startswith(("while", "GPU")) else ""
        table.add_row(name, format_bytes(size), meaning, style=style)
    return table


def format_bytes(number: int) -> str:
    """Format bytes as MiB or GiB."""
    unit, name = (GIB, "GiB") if abs(number) >= GIB / 10 else (2**20, "MiB")
    return f"{number / unit:,.2f} {name}"


def format_count(parameters: int) -> str:
    """Format a number of parameters."""
    unit, name = (1e9, "B") if parameters >= 1e8 else (1e6, "M")
    return f"{parameters / unit:,.1f}{name}"


def describe_fit(budget: Budget) -> str:
    """Describe whether the budget fits."""
    lacking = budget.longest - budget.rollout.cached_tokens
    if lacking > 0:
        return f"does not fit: the cache lacks {lacking:,} tokens for one sequence"
    if budget.headroom < 0.0:
        return f"does not fit: exceeds the GPU by {-budget.headroom:.1%}"
    tight = "" if budget.headroom >= HEADROOM else f": too little headroom, below {HEADROOM:.0%}"
    return f"fits, {budget.headroom:.1%} free{tight}"


# Model and layout of a budget: a preset or a model directory, overridden by options.
#
# A preset provides its layout, lengths and batch; a model directory starts from the defaults. Only
# its config.json is read.

STATES = 3
"""Two that are kept (durability/states.py), and the next one."""
PRESETS: dict[str, tuple[PipelineSettings, ModelShape, int]] = {
    "full_scale": (presets.FULL_SCALE, model_shape.COMPASSMAX, 256),
    "compassmax": (presets.COMPASSMAX, model_shape.COMPASSMAX, 256),
    "ring_lite": (presets.RING_LITE, model_shape.LING_LITE, 256),
    "single_node": (presets.SINGLE_NODE, model_shape.QWEN3_15B_A2B, 8),
    "compass_thinker": (presets.COMPASS_THINKER, model_shape.QWEN2_5_7B, 8),
}
"""Settings, the model they are made for, and the number of GPUs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A model, its layout on a number of GPUs, and the workload."""

    name: str
    model: ModelShape
    layout: LayoutSettings
    precision: Precision
    """Precision of rollouts."""
    work: Work
    gpus: int
    gpu: int = H100_BYTES
    """Bytes of one GPU."""
    group_size: int = 8
    """Responses of a prompt."""
    mini_batches: int = 2
    """Optimizer updates of a step."""
    commit_every: int = 1
    """Steps between two commits of the trainer's state."""

    def title(self) -> str:
        """Describe the model, the GPUs and the layout."""
        return (
            f"{self.name}: {format_count(self.model.parameters)} parameters, "
            f"{format_count(self.model.active_parameters)} active, on {self.gpus} GPUs\n"
            f"{describe_layout(self.layout, self.precision)}"
        )

    @property
    def state_bytes_per_weight(self) -> int:
        """Bytes of a committed state: the weight, and in fp32 the weight and two moments."""
        return element_bytes(self.layout.precision) + 12

    @property
    def states_on_disk(self) -> int:
        """Bytes of the committed states, and of the one that is written before one is dropped."""
        return STATES * self.state_bytes_per_weight * self.model.parameters

    @property
    def rollouts_on_disk(self) -> int:
        """Bytes of a step's rollouts if every sequence has full length, texts left out.

        Twice: parts that are written as responses end, and the whole that the step trains on.
        A token is an int32, of a response also its log-probability in fp32; the last token of a
        sequence is not fed to the model, so it has no routes.
        """
        work = self.work
        tokens = 4 * work.longest + 4 * work.response_tokens
        return 2 * work.sequences * (tokens + (work.longest - 1) * route_bytes(self.model))

    def budget(self) -> Budget:
        """Compute the memory of the fullest GPU."""
        return budget(
            self.model, self.layout, self.precision, self.work, gpus=self.gpus, gpu=self.gpu
        )


def plan_of_preset(name: str) -> Plan:
    """Return the plan of a preset.

    Raises:
        SettingsError: there is no such preset.
    """
    if name not in PRESETS:
        raise SettingsError(
            f"--preset {name!r} is not one of {', '.join(PRESETS)}; "
            f"{did_you_mean(name, list(PRESETS)) or 'for a model directory use --model'}"
        )
    preset, model, gpus = PRESETS[name]
    phase = preset.rl_one
    return Plan(
        name,
        model,
        phase.engines.layout,
        phase.engines.precision,
        work_of(preset),
        gpus,
        group_size=phase.group_size,
        mini_batches=phase.num_mini_batches,
        commit_every=phase.commit_every,
    )


def plan_of_model(folder: Path) -> Plan:
    """Return the plan of a model directory with default settings on one GPU.

    Raises:
        SettingsError: it is not a model directory.
        DataError: the model family is not supported.
    """
    engines = MachineSettings()
    work = work_of(presets.CPU_SMOKE)
    return Plan(str(folder), read_shape(folder), engines.layout, engines.precision, work, gpus=1)


def read_plan(
    preset: str,
    model: str,
    layout: str,
    precision: str,
    gpus: int,
    gpu_gib: float,
    prompt: int,
    response: int,
    sequences: int,
) -> Plan:
    """Return the plan of a preset or, without one, of a model directory, with what differs.

    The other arguments are those of `override_layout` and `override_work`.

    Raises:
        SettingsError: an option is invalid.
        DataError: the model family is not supported.
    """
    start = plan_of_preset(preset) if preset else plan_of_model(Path(model))
    overridden = override_layout(
        start, layout=layout, precision=precision, gpus=gpus, gpu_gib=gpu_gib
    )
    return override_work(overridden, prompt, response, sequences)


def override_layout(plan: Plan, *, layout: str, precision: str, gpus: int, gpu_gib: float) -> Plan:
    """Override the given options.

    Args:
        plan: plan of a preset or of a model.
        layout: JSON of the LayoutSettings that differ.
        precision: precision of rollouts; '' keeps the plan's.
        gpus: number of GPUs; 0 keeps the plan's.
        gpu_gib: memory of one GPU; 0 = that of an H100.

    Raises:
        SettingsError: an option is invalid; the message names the setting.
    """
    if precision and precision not in set(Precision):
        precisions = ", ".join(one.value for one in Precision)
        raise SettingsError(f"--precision {precision!r} is not one of {precisions}")
    return replace(
        plan,
        layout=_override(plan.layout, layout),
        precision=Precision(precision or plan.precision),
        gpus=gpus or plan.gpus,
        gpu=int(gpu_gib * GIB) or plan.gpu,
    )


def _override(layout: LayoutSettings, text: str) -> LayoutSettings:
    try:
        changes = json.loads(text)
        if not isinstance(changes, dict):
            raise SettingsError(f"--layout {text} is not a JSON object")
        return LayoutSettings.model_validate(layout.model_dump() | changes)
    except json.JSONDecodeError as error:
        raise SettingsError(f"--layout {text} is not JSON: {error}") from error
    except ValidationError as error:
        raise SettingsError(f"--layout: {explain(error, LayoutSettings)}") from error


def override_work(plan: Plan, prompt: int, response: int, sequences: int) -> Plan:
    """Override lengths in tokens and the responses of a step; 0 keeps the plan's."""
    work = plan.work
    return replace(
        plan,
        work=Work(
            prompt or work.prompt_tokens,
            response or work.response_tokens,
            sequences or work.sequences,
            work.reference,
        ),
    )


def work_of(preset: PipelineSettings) -> Work:
    """Return the larger workload of the two RL phases."""
    phases = (preset.rl_one, preset.rl_two)
    return Work(
        preset.curation.max_prompt_tokens,
        max(phase.max_new_tokens for phase in phases),
        max(phase.prompts_per_step * phase.group_size for phase in phases),
        reference=any(one.needs_reference for phase in phases for one in find_terms(phase.terms)),
    )


# What the pipeline takes of one machine, with the engines that run in its own process.
#
# Fitted to one model, SmolLM2-135M-Instruct in fp32 with micro-batches of 1,024 tokens, which took
# 6.4 GB of memory at its peak; a graphics processor's memory is `memory.py`.

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
