"""The model and layout of a budget: from a preset or a model directory, changed by options.

A preset brings its layout, its lengths and its batch; a model directory starts from the defaults.
Nothing is loaded: only config.json is read.
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
    "single_node": (presets.SINGLE_NODE, model_shape.QWEN3_15B_A2B, 8),
    "compass_thinker": (presets.COMPASS_THINKER, model_shape.QWEN2_5_7B, 8),
}
"""Settings, the model they are laid out for, GPUs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One model on so many GPUs, and what they do with it."""

    name: str
    model: ModelShape
    layout: LayoutSettings
    precision: Precision
    """Of rollouts."""
    work: Work
    gpus: int
    gpu: int = H100_BYTES
    """Bytes of one GPU."""

    def title(self) -> str:
        """Name the model, the GPUs and how it is divided over them."""
        return (
            f"{self.name}: {format_count(self.model.parameters)} parameters, "
            f"{format_count(self.model.active_parameters)} active, on {self.gpus} GPUs\n"
            f"{describe_layout(self.layout, self.precision)}"
        )

    def budget(self) -> Budget:
        """Compute what the fullest GPU holds."""
        return budget(
            self.model, self.layout, self.precision, self.work, gpus=self.gpus, gpu=self.gpu
        )


def of_preset(name: str) -> Plan:
    """Take a preset as it is.

    Raises:
        SettingsError: there is none of that name.
    """
    if name not in PRESETS:
        raise SettingsError(
            f"--preset {name!r} is none of {', '.join(PRESETS)}; "
            f"{did_you_mean(name, list(PRESETS)) or 'for a model directory use --model'}"
        )
    preset, model, gpus = PRESETS[name]
    engines = preset.rl_one.engines
    return Plan(name, model, engines.layout, engines.precision, work_of(preset), gpus)


def of_model(folder: Path) -> Plan:
    """Take a model directory, with default settings on one GPU.

    Raises:
        SettingsError: it is no model directory.
        DataError: it is of another family.
    """
    engines = MachineSettings()
    work = work_of(presets.CPU_SMOKE)
    return Plan(str(folder), read_shape(folder), engines.layout, engines.precision, work, gpus=1)


def changed(plan: Plan, *, layout: str, precision: str, gpus: int, gpu_gib: float) -> Plan:
    """Replace the given options.

    Args:
        plan: of a preset or of a model.
        layout: JSON of the LayoutSettings that differ.
        precision: of rollouts; '' keeps the plan's.
        gpus: 0 keeps the plan's.
        gpu_gib: of one GPU; 0 = an H100's.

    Raises:
        SettingsError: names the setting.
    """
    if precision and precision not in set(Precision):
        known = ", ".join(one.value for one in Precision)
        raise SettingsError(f"--precision {precision!r} is none of {known}")
    return replace(
        plan,
        layout=_laid_over(plan.layout, layout),
        precision=Precision(precision or plan.precision),
        gpus=gpus or plan.gpus,
        gpu=int(gpu_gib * GIB) or plan.gpu,
    )


def _laid_over(layout: LayoutSettings, text: str) -> LayoutSettings:
    try:
        given = json.loads(text)
        if not isinstance(given, dict):
            raise SettingsError(f"--layout {text} is no JSON object")
        return LayoutSettings.model_validate(layout.model_dump() | given)
    except json.JSONDecodeError as error:
        raise SettingsError(f"--layout {text} is no JSON: {error}") from error
    except ValidationError as error:
        raise SettingsError(f"--layout: {explain(error, LayoutSettings)}") from error


def with_work(plan: Plan, prompt: int, response: int, sequences: int) -> Plan:
    """Replace lengths in tokens and the responses of a step; 0 keeps the plan's."""
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
    """The larger of the two phases."""
    phases = (preset.rl_one, preset.rl_two)
    return Work(
        preset.curation.max_prompt_tokens,
        max(phase.max_new_tokens for phase in phases),
        max(phase.prompts_per_step * phase.group_size for phase in phases),
        reference=any(phase.loss.auxiliary.kl > 0.0 for phase in phases),
    )
