"""Model and layout of a budget: a preset or a model directory, overridden by options.

A preset provides its layout, lengths and batch; a model directory starts from the defaults. Only
its config.json is read.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from data_schemas import presets
from data_schemas.faults import did_you_mean, explain
from data_schemas.machine_settings import LayoutSettings, MachineSettings, Precision
from data_schemas.settings import PipelineSettings
from tasks.algorithms.terms.table import find_terms
from tasks.capacity import model_shape
from tasks.capacity.memory import (
    GIB,
    H100_BYTES,
    MemoryBudget,
    Workload,
    budget,
    element_bytes,
    route_bytes,
)
from tasks.capacity.model_shape import ModelShape, shape_of
from tasks.errors import SettingsError
from tasks.models.architectures import refuse_foreign_code

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What a command says of a plan; workflows/capacity.py describes the options."""

    preset: str
    model: str
    layout: str
    precision: str
    gpus: int
    gpu_gib: float
    prompt: int
    response: int
    sequences: int


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


def format_count(parameters: int) -> str:
    """Format a number of parameters."""
    unit, name = (1e9, "B") if parameters >= 1e8 else (1e6, "M")
    return f"{parameters / unit:,.1f}{name}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A model, its layout on a number of GPUs, and the workload."""

    name: str
    model: ModelShape
    layout: LayoutSettings
    precision: Precision
    """Precision of rollouts."""
    work: Workload
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

    def budget(self) -> MemoryBudget:
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


def read_plan(options: PlanOptions) -> Plan:
    """Return the plan of a preset or, without one, of a model directory, with what differs.

    Raises:
        SettingsError: an option is invalid.
        DataError: the model family is not supported.
    """
    preset = options.preset
    start = plan_of_preset(preset) if preset else plan_of_model(Path(options.model))
    overridden = override_layout(
        start,
        layout=options.layout,
        precision=options.precision,
        gpus=options.gpus,
        gpu_gib=options.gpu_gib,
    )
    return override_work(overridden, options.prompt, options.response, options.sequences)


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
        work=Workload(
            prompt or work.prompt_tokens,
            response or work.response_tokens,
            sequences or work.sequences,
            work.reference,
        ),
    )


def work_of(preset: PipelineSettings) -> Workload:
    """Return the larger workload of the two RL phases."""
    phases = (preset.rl_one, preset.rl_two)
    return Workload(
        preset.curation.max_prompt_tokens,
        max(phase.max_new_tokens for phase in phases),
        max(phase.prompts_per_step * phase.group_size for phase in phases),
        reference=any(one.needs_reference for phase in phases for one in find_terms(phase.terms)),
    )
