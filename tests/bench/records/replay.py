"""Rebuild what the records of prompts predicted for every group of a phase.

The functions are those of the loop: records begin with grading, and a draw knows the groups of
earlier draws only. Phases of the study's variant `dynamic` are the ones to read, because they skip
no prompt: what a prediction would have skipped was rolled out, too.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data_schemas.arrow import read_table
from data_schemas.graded import GradedProblem
from data_schemas.ledger import SKIPPED, GroupOutcome, LedgerRow
from data_schemas.reports import LEDGER_FILE
from tasks.algorithms.estimators import CONFIDENCE, Interval
from tasks.algorithms.zero_variance import zero_variance_expectation
from tasks.errors import DataError, SettingsError
from tasks.formats.ledger_file import read_ledger
from tasks.provenance.lineage.statements import load_statement
from tasks.rl.phase import PROBLEMS_FILE
from tasks.rl.prompts import Family, History, Neighbours, family_of
from tasks.store.objects import localise

RESAMPLES = 1000
VARIANT = "dynamic"


@dataclass(frozen=True, slots=True)
class Draw:
    """A group that was rolled out, and what was predicted of it before."""

    row: LedgerRow
    family: Family
    solved: float
    """Of the Beta distribution of the prompt's pass rate; with `failed`."""
    failed: float
    response_tokens: float
    """Predicted mean length of a response."""

    @property
    def has_contrast(self) -> bool:
        """Whether its rewards differ."""
        return self.row.outcome is GroupOutcome.NON_ZERO_VARIANCE

    @property
    def zero_variance(self) -> float:
        """Predicted probability of zero variance."""
        return zero_variance_expectation(self.solved, self.failed, self.row.rollouts)


def replay(problems: Sequence[GradedProblem], rows: Sequence[LedgerRow]) -> list[Draw]:
    """Predict every group of a phase from the groups before it.

    Groups with fewer than two verdicts are left out; they change the records of lengths only.

    Raises:
        DataError: the phase skipped prompts or had responses in flight, or a prompt is unknown.
    """
    if any(row.outcome in SKIPPED or row.outcome is GroupOutcome.IN_FLIGHT for row in rows):
        raise DataError(
            "the phase skipped prompts or had responses in flight, so it does not show what "
            f"would have come of every prompt; give one of the variant {VARIANT!r}"
        )
    by_id = {problem.id: problem for problem in problems}
    if unknown := {row.problem_id for row in rows} - by_id.keys():
        raise DataError(f"{len(unknown)} prompts were not graded, such as {min(unknown)}")
    history, found = History.graded(problems), list[Draw]()
    ordered = sorted(rows, key=lambda row: (row.step, row.round))
    for _, draw in groupby(ordered, key=lambda row: (row.step, row.round)):
        drawn = list(draw)
        neighbours = Neighbours(problems, history)
        expected = history.predicted_tokens([by_id[row.problem_id] for row in drawn])
        for row, tokens in zip(drawn, expected, strict=True):
            problem = by_id[row.problem_id]
            rate = neighbours.pass_rate(problem)
            if rate is not None and tokens is not None and row.rollouts - row.abstained > 1:
                found.append(Draw(row, family_of(problem), *rate, tokens))
        for row in drawn:
            scored = row.rollouts - row.abstained
            # Only the mean of the lengths counts.
            lengths = [new_tokens(row), *[0] * (row.rollouts - 1)]
            before = neighbours.expected_pass_rate(by_id[row.problem_id])
            history.remember(row.problem_id, row.solved, scored, lengths, before)
    return found


def new_tokens(row: LedgerRow) -> int:
    """Tokens of the responses of a group."""
    return row.generated_tokens - row.draft_tokens + row.reused_tokens


def phases(store: Path, variant: str = VARIANT) -> dict[str, list[Draw]]:
    """Replay every phase of a variant of the study that a local store has, by its seed.

    Raises:
        SettingsError: there is none, or several of the same stage.
    """
    found: dict[str, list[Draw]] = {}
    for path in sorted((store / "statements").glob("*.json")):
        statement = load_statement(str(store), path.stem)
        name, _, seed = statement.stage.rpartition("/")
        if name != f"ablation/{variant}":
            continue
        if seed in found:
            raise SettingsError(f"{store} has {statement.stage} twice; use a new store")
        (graded,) = (item for item in statement.inputs if item.role == "graded")
        (report,) = (item for item in statement.outputs if item.role == "report")
        folders = [localise(item.uri, item.digest, store) for item in (graded, report)]
        problems = read_table(folders[0] / PROBLEMS_FILE, GradedProblem)
        found[seed] = replay(problems, read_ledger(folders[1] / LEDGER_FILE))
    if not found:
        raise SettingsError(
            f"{store} has no phase of the variant {variant!r}; make ablation VARIANTS={variant} "
            "makes them"
        )
    return dict(sorted(found.items()))


def interval(units: Sequence[object], statistic: Callable[[NDArray[np.intp]], float]) -> Interval:
    """Compute a statistic with its percentile bootstrap interval.

    Args:
        units: one per draw; draws of one unit, a prompt or a step, are resampled together.
        statistic: takes the numbers of the draws, with repetitions.
    """
    members: dict[object, list[int]] = {}
    for number, unit in enumerate(units):
        members.setdefault(unit, []).append(number)
    blocks = [np.array(numbers, dtype=np.intp) for numbers in members.values()]
    generator = np.random.default_rng(0)
    found = [
        statistic(np.concatenate([blocks[block] for block in chosen]))
        for chosen in generator.integers(0, len(blocks), (RESAMPLES, len(blocks)))
    ]
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(found, [tail, 1.0 - tail])
    everything = np.arange(len(units), dtype=np.intp)
    return Interval(mean=statistic(everything), low=float(low), high=float(high))


def read_arguments(module: str, description: str | None, arguments: Sequence[str]) -> Path:
    """Read the store from a command line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.bench.records.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("store", type=Path, help="local store of `make ablation`")
    return parser.parse_args(arguments).store
