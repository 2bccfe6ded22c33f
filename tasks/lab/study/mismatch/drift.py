"""The mismatch of every step of RL, with and without router replay.

    python -m tasks.lab.study.mismatch.drift --engines real --steps 50 --out drift

One phase per replay mode, from the same model, problems and seed: the responses of the first step
are the same, later ones come from policies that were trained differently. The plot shows the values
that the gate recorded before the update of each step. A run that was stopped is continued. A second
table says when each measured quantity left its usual range, and how long before the reward
collapsed: --learning-rate 0.001 makes it collapse.
"""

import argparse
import io
import json
import logging
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from data_schemas.machine_settings import MachineSettings, Precision
from data_schemas.reports import GateRecord
from data_schemas.rl_settings import EngineSettings, RewardSettings, RLSettings, RouterReplay
from data_schemas.rows import Domain, Problem
from tasks.engines.scoring import open_scoring
from tasks.lab.study.mismatch.alarms import alarms_table
from tasks.lab.study.mismatch.numerics import EMBEDDED, real_engines, sample_problems
from tasks.models.architectures import refuse_foreign_code
from tasks.models.model_folder import check_model_folder
from tasks.platform.command_line import command_parser, positive, positive_number, run
from tasks.platform.progress import progress
from tasks.rl import state
from tasks.rl.phase import Phase, finish, train
from tasks.store.files import write_bytes
from tasks.training.foundation.base import shipped_base

DOMAINS = (Domain.MATHS, Domain.CHOICE, Domain.EXTRACTION, Domain.TOOL_USE)
"""Verified by rules alone: no sandbox, no judge."""
MAX_ABSTAINED = 0.5
"""Above the default: a phase that stops early would be missing in the figure."""
NO_CANARIES = 1_000_000
"""Steps between two checks of all verifiers, including those not used here."""
DEFAULT_LEARNING_RATE: float = RLSettings.model_fields["learning_rate"].default
NUM_PROBLEMS = 400
COLOURS = {RouterReplay.OFF: "#b3372f", RouterReplay.R2: "#d08a1d", RouterReplay.R3: "#3f7fb5"}
SCREEN_WIDTH = 100
PICTURE_FILE, RECORDS_FILE, MODEL = "drift.png", "drift.json", "model"

GatesByReplay = Mapping[RouterReplay, Sequence[GateRecord]]
"""The gate record of every step, by replay mode."""


def settings_of(
    engines: MachineSettings,
    replay: RouterReplay,
    *,
    steps: int,
    prompts: int,
    tokens: int,
    learning_rate: float = DEFAULT_LEARNING_RATE,
) -> RLSettings:
    """The embedded defaults of a phase on other engines."""
    return RLSettings(
        domains=dict.fromkeys(DOMAINS, 1.0),
        steps=steps,
        prompts_per_step=prompts,
        max_new_tokens=tokens,
        learning_rate=learning_rate,
        rewards=RewardSettings(max_abstained_share=MAX_ABSTAINED, canary_every=NO_CANARIES),
        router_replay=replay,
        engines=EngineSettings.model_validate(engines.model_dump()),
        commit_every=5,
    )


def records(
    model: Path, settings: RLSettings, problems: Sequence[Problem], folder: Path
) -> list[state.StepRecord]:
    """Train a phase, or continue it, and return the records of its steps.

    The trained policy is written to `folder`/model, for a mismatch table.
    """
    selected = tuple(problem for problem in problems if problem.domain in settings.domains)
    phase = Phase(settings, model, selected, folder / "state", "drift")
    with open_scoring(model, settings.rewards) as scorer:
        steps = train(phase, scorer)
        for _ in progress(steps, settings.router_replay.value, settings.steps):
            pass
    finish(phase, folder / MODEL, folder / "report")
    return list(state.read_steps(phase.state, settings.steps))


def drift_table(by_replay: GatesByReplay) -> Table:
    """Build the table: k3 over all steps and over their first and last fifth, and its parts."""
    table = Table(box=None)
    table.add_column("replay")
    heads = ("steps", "first fifth", "last fifth", "k3, mean", "median", "largest")
    for head in (*heads, "mean |dlogp|", "beyond 2x"):
        table.add_column(head, justify="right")
    for replay, gates in by_replay.items():
        k3 = [gate.k3 for gate in gates]
        fifth = max(1, len(k3) // 5)
        means = map(statistics.fmean, (k3[:fifth], k3[-fifth:], k3))
        numbers = (*means, statistics.median(k3), max(k3))
        table.add_row(
            replay.value,
            str(len(gates)),
            *(f"{number:.2e}" for number in numbers),
            f"{statistics.fmean(gate.mean_abs_logprob for gate in gates):.2e}",
            f"{statistics.fmean(gate.extreme_share for gate in gates):.4%}",
        )
    return table


def picture(by_replay: GatesByReplay, title: str) -> bytes:
    """Draw k3 of every step on a logarithmic scale, one line per replay mode."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for replay, gates in by_replay.items():
        steps = [gate.step for gate in gates]
        # A step without any difference would be at minus infinity.
        k3 = [max(gate.k3, 1e-15) for gate in gates]
        axes.plot(steps, k3, color=COLOURS[replay], lw=1.8, label=replay.value)
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("k3 of trainer to rollout, nats")
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(axis="y", color="#e9edf1")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    stream = io.BytesIO()
    # Without the version of matplotlib, so that equal records give equal bytes.
    figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    return stream.getvalue()


def _parse_modes(text: str) -> list[RouterReplay]:
    try:
        return [RouterReplay(way.strip()) for way in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parse_rate(text: str) -> float:
    rate = positive_number(text)
    if rate > 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} must be at most 1")
    return rate


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a command line."""
    parser = command_parser("python -m tasks.lab.study.mismatch.drift", __doc__)
    precisions = [Precision.FP32.value, Precision.BF16.value, Precision.FP16.value]
    parser.add_argument("--engines", choices=["embedded", "real"], default="embedded")
    parser.add_argument("--model", default="", help="directory to start from; the shipped one")
    parser.add_argument("--rollout", choices=precisions, default="bf16", help="precision")
    parser.add_argument("--trainer", choices=precisions, default="fp32", help="if real: precision")
    parser.add_argument("--replay", type=_parse_modes, default="off,r3", help="modes: off, r2, r3")
    parser.add_argument("--steps", type=positive, default=50)
    parser.add_argument("--prompts", type=positive, default=12, help="of a step, 8 answers each")
    parser.add_argument("--tokens", type=positive, default=64, help="of an answer")
    parser.add_argument("--learning-rate", type=_parse_rate, default=DEFAULT_LEARNING_RATE)
    parser.add_argument(
        "--out",
        default="drift",
        help="folder for drift.png, drift.json and, by phase, state and model",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    """Train, print the table and draw."""
    options, console = parse_arguments(arguments), Console(highlight=False)
    torch.set_num_threads(1)
    rollout, trainer = Precision(options.rollout), Precision(options.trainer)
    engines = EMBEDDED[0].model_copy(update={"precision": rollout})
    if options.engines == "real":
        engines = real_engines(rollout, trainer)
    out, runs = Path(options.out), {}
    model = Path(options.model) if options.model else shipped_base()
    refuse_foreign_code(model)
    check_model_folder(model)
    problems = sample_problems(0, NUM_PROBLEMS)
    for replay in options.replay:
        settings = settings_of(
            engines,
            replay,
            steps=options.steps,
            prompts=options.prompts,
            tokens=options.tokens,
            learning_rate=options.learning_rate,
        )
        folder = out / "-".join((options.engines, rollout, trainer, replay))
        runs[replay] = records(model, settings, problems, folder)
    by_replay = {replay: [step.gate for step in steps] for replay, steps in runs.items()}
    watched = {
        replay.value: [step.report.metrics for step in steps] for replay, steps in runs.items()
    }
    # On a narrow terminal lines wrap; a narrower table would cut numbers.
    wide = Console(highlight=False, width=max(console.width, SCREEN_WIDTH))
    wide.print(drift_table(by_replay), alarms_table(watched), sep="\n\n")
    title = f"{options.engines} engines, rollouts {rollout.value}, trainer {trainer.value}"
    write_bytes(out / PICTURE_FILE, picture(by_replay, title))
    gates_by_replay = {
        replay.value: [gate.model_dump(mode="json") for gate in gates]
        for replay, gates in by_replay.items()
    }
    write_bytes(out / RECORDS_FILE, json.dumps(gates_by_replay, indent=1).encode() + b"\n")


if __name__ == "__main__":
    # Warnings would break the progress bar. Not in main, because it affects the whole process.
    logging.getLogger("tasks").setLevel(logging.ERROR)
    run(main)
