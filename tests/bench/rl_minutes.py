"""Minutes of RL on the engines of this machine, continued by the next call.

    python -m tests.bench.rl_minutes --until 30 [--engines real]

Trains the shipped base model until its committed steps have taken so many minutes in all, and
prints one line of JSON: steps and minutes so far, tokens per second, seconds by part, and the share
of solved responses at the start and at the end. Every step is committed: a call that is killed
loses the step in progress, and the next one continues after the last. Opening engines and commits
are not counted.
"""

import argparse
import json
import logging
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from data_schemas.machine_settings import MachineSettings, Precision
from data_schemas.rl_settings import RLSettings, RouterReplay
from tasks.durability import states
from tasks.engines.scoring import open_scoring
from tasks.lab.study.mismatch.drift import settings_of
from tasks.lab.study.mismatch.numerics import real_engines, sample_problems
from tasks.platform.command_line import positive, positive_number, run
from tasks.rl import state
from tasks.rl.phase import Phase, train
from tasks.training.foundation.base import shipped_base

ENDLESS = 1_000_000
"""Steps of the phase: its time is over before."""
OVERLAPPING = ("rollout", "reward")
"""Parts of a step that another part, collect, includes."""
NUM_PROBLEMS = 400
EDGE = 20
"""Steps at the start and at the end whose solved share is printed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the committed steps say."""

    steps: int
    minutes: float
    until: float
    tokens_s: float
    """Generated tokens by the seconds of whole steps."""
    seconds: dict[str, float]
    """By part."""
    solved_at_start: float
    solved_at_end: float


def minutes_of(record: state.StepRecord) -> float:
    """Return how long a step took."""
    parts = record.timing.seconds
    return sum(parts[name] for name in parts if name not in OVERLAPPING) / 60.0


def progress_of(records: Sequence[state.StepRecord], until: float) -> Progress:
    """Sum up committed steps, of which there is at least one."""
    minutes = sum(map(minutes_of, records))
    tokens = sum(row.generated_tokens for record in records for row in record.ledger)
    parts: dict[str, float] = {}
    for record in records:
        for name, seconds in record.timing.seconds.items():
            parts[name] = parts.get(name, 0.0) + seconds
    solved = [record.report.metrics["reward/solved_share"] for record in records]
    return Progress(
        steps=len(records),
        minutes=minutes,
        until=until,
        tokens_s=tokens / (60.0 * minutes),
        seconds=parts,
        solved_at_start=statistics.fmean(solved[:EDGE]),
        solved_at_end=statistics.fmean(solved[-EDGE:]),
    )


def train_until(until: float, settings: RLSettings, folder: Path) -> Progress:
    """Train, or go on, until the committed steps have taken `until` minutes."""
    records = list(state.read_steps(folder, states.newest(folder)))
    if sum(map(minutes_of, records)) < until:
        model, problems = shipped_base(), sample_problems(0, NUM_PROBLEMS)
        asked = tuple(problem for problem in problems if problem.domain in settings.domains)
        phase = Phase(settings, model, asked, folder, "rl_minutes")
        with open_scoring(model, settings.rewards) as scorer:
            for record in train(phase, scorer):
                # A newest state that is not whole is trained again.
                records[record.report.step - 1 :] = [record]
                if sum(map(minutes_of, records)) >= until:
                    break
    return progress_of(records, until)


def engines_of(name: str) -> MachineSettings:
    """Return the engines of a name."""
    if name == "embedded":
        return MachineSettings(precision=Precision.BF16)
    return real_engines(Precision.BF16, Precision.BF16)


def main(arguments: Sequence[str]) -> None:
    """Train and print what the committed steps say."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.rl_minutes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--until", type=positive_number, required=True, help="minutes in all")
    parser.add_argument("--engines", choices=("embedded", "real"), default="embedded")
    parser.add_argument("--prompts", type=positive, default=12, help="of a step, 8 answers each")
    parser.add_argument("--tokens", type=positive, default=64, help="of an answer")
    parser.add_argument("--out", type=Path, default=Path("runs/first_gpu/rl"))
    options = parser.parse_args(arguments)
    settings = settings_of(
        engines_of(options.engines),
        RouterReplay.R3,
        steps=ENDLESS,
        prompts=options.prompts,
        tokens=options.tokens,
    ).model_copy(update={"commit_every": 1})
    found = train_until(options.until, settings, options.out / options.engines)
    print(json.dumps(asdict(found)), flush=True)  # noqa: T201 - the output of a command


if __name__ == "__main__":
    logging.getLogger("tasks").setLevel(logging.ERROR)
    run(main)
