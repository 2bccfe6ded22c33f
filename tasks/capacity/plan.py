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
from tasks.capacity import model_shape
from tasks.capacity.memory import GIB, H100_BYTES, Budget, Work, budget
from tasks.capacity.model_shape import ModelShape
from tasks.capacity.table import describe_layout, format_count, read_shape
from tasks.errors import SettingsError

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

    def title(self) -> str:
        """Describe the model, the GPUs and the layout."""
        return (
            f"{self.name}: {format_count(self.model.parameters)} parameters, "
            f"{format_count(self.model.active_parameters)} active, on {self.gpus} GPUs\n"
            f"{describe_layout(self.layout, self.precision)}"
        )

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
        known = ", ".join(one.value for one in Precision)
        raise SettingsError(f"--precision {precision!r} is not one of {known}")
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
        reference=any(phase.loss.auxiliary.kl > 0.0 for phase in phases),
    )
