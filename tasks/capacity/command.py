"""Does a layout fit its GPUs? The memory budget of one GPU, part by part.

    python -m tasks.capacity.command full_scale
    python -m tasks.capacity.command single_node --layout '{"expert": 4}' --gpus 16
    python -m tasks.capacity.command path/to/model --gpus 8 --precision bf16 \\
        --layout '{"tensor": 2, "expert": 4, "recompute": true, "precision": "bf16"}'

A preset brings its layout, its lengths and its batch; a model directory starts from the defaults.
Options change either. Nothing is loaded: only config.json is read.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from data_schemas import presets
from data_schemas.machine_settings import LayoutSettings, MachineSettings, Precision
from data_schemas.settings import PipelineSettings
from tasks.capacity import model_shape
from tasks.capacity.memory import GIB, H100_BYTES, Work, budget
from tasks.capacity.model_shape import ModelShape
from tasks.capacity.table import HEADROOM, budget_table, counted, read_shape, said
from tasks.errors import PipelineError, SettingsError

PRESETS: dict[str, tuple[PipelineSettings, ModelShape, int]] = {
    "full_scale": (presets.FULL_SCALE, model_shape.COMPASSMAX, 256),
    "single_node": (presets.SINGLE_NODE, model_shape.QWEN3_15B_A2B, 8),
    "compass_thinker": (presets.COMPASS_THINKER, model_shape.QWEN2_5_7B, 8),
}
"""Settings, the model they are laid out for, GPUs."""


def asked(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tasks.capacity.command",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", help=f"a preset ({', '.join(PRESETS)}) or a model directory")
    parser.add_argument("--gpus", type=int, help="of the whole task; a preset has its own")
    parser.add_argument("--gpu-gib", type=float, default=H100_BYTES / GIB, help="of one GPU")
    parser.add_argument("--layout", default="{}", help="JSON: LayoutSettings that differ")
    parser.add_argument("--precision", choices=[one.value for one in Precision], help="of rollouts")
    parser.add_argument("--prompt", type=int, help="tokens of the longest prompt")
    parser.add_argument("--response", type=int, help="tokens of the longest response")
    parser.add_argument("--sequences", type=int, help="responses of a step")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Print the budget; 1 if it does not fit, or what was asked for makes no sense."""
    options, console = asked(arguments), Console(highlight=False)
    try:
        model, machine, work, gpus = _start(options.target)
        changed = LayoutSettings.model_validate_json(options.layout)
        layout = machine.layout.model_copy(
            update={name: getattr(changed, name) for name in changed.model_fields_set}
        )
        work = Work(
            options.prompt or work.prompt_tokens,
            options.response or work.response_tokens,
            options.sequences or work.sequences,
            work.reference,
        )
        precision = Precision(options.precision or machine.precision)
        gpus, gpu = options.gpus or gpus, int(options.gpu_gib * GIB)
        found = budget(model, layout, precision, work, gpus=gpus, gpu=gpu)
    except (PipelineError, ValidationError) as error:
        console.print(f"{type(error).__name__}: {error}", markup=False)
        return 1
    title = (
        f"{options.target}: {counted(model.parameters)} parameters, "
        f"{counted(model.active_parameters)} active, on {gpus} GPUs\n"
        f"{said(layout, precision)}"
    )
    console.print(budget_table(title, found))
    return 0 if found.fits(HEADROOM) else 1


def _start(target: str) -> tuple[ModelShape, MachineSettings, Work, int]:
    """What a preset or a model directory begins with."""
    if target not in PRESETS:
        if not Path(target).is_dir():
            raise SettingsError(
                f"{target!r} is neither a folder nor one of {', '.join(PRESETS)}. "
                "See python -m tasks.capacity.command --help"
            )
        preset = presets.CPU_SMOKE
        return read_shape(Path(target)), MachineSettings(), work_of(preset), 1
    preset, model, gpus = PRESETS[target]
    return model, preset.rl_one.engines, work_of(preset), gpus


def work_of(preset: PipelineSettings) -> Work:
    """The larger of the two phases."""
    phases = (preset.rl_one, preset.rl_two)
    return Work(
        preset.curation.max_prompt_tokens,
        max(phase.max_new_tokens for phase in phases),
        max(phase.prompts_per_step * phase.group_size for phase in phases),
        reference=any(phase.loss.auxiliary.kl > 0.0 for phase in phases),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
