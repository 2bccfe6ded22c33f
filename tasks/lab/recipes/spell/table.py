"""What self-play did, by variant: its own metrics early and late, and held-out answers.

Early and late are the first and the last steps of a phase. Intervals are bootstraps over these
steps, or over held-out questions; they do not contain the variance between seeds. A claim is
*shown* if its interval says so and every seed agrees.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from data_schemas.arrow import read_table
from data_schemas.frozen_model import FrozenModel
from data_schemas.reports import LEDGER_FILE, STEPS_FILE, StepReport
from data_schemas.rows import Domain
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.algorithms.intervals import Interval, bootstrap_mean, paired_difference
from tasks.algorithms.suites import per_problem
from tasks.errors import DataError
from tasks.formats.ledgers import read_ledger

PUBLISHED, PLAIN = "spell", "plain"
HELD_OUT = "held_out_share"
WINDOW = 5
"""Steps at either end of a phase."""
MEASURES = {
    "bad_format_share": "questions without the form of their task, %",
    "answer_reward_mean": "mean reward of the answers to grounded questions, %",
    "operations_mean": "operations per question",
    "distinct_share": "questions that their cluster does not remember, %",
    "ungrounded_share": "questions answered without documents, %",
    "wrong_reference_share": "references that the lists contradict, %",
    "false_accept_share": "wrong answers that only the verifier accepts, % of all",
    HELD_OUT: "held-out questions, %",
}
"""Metrics of the phase and of the evaluation, and what they are called."""
POINTS = 100.0
LIMITS = {
    "bad_format_share": (-math.inf, 5.0),
    "answer_reward_mean": (25.0, 75.0),
    "false_accept_share": (-math.inf, 5.0),
}
"""Within which the published variant is to end."""
RISING = "operations_mean"
CLAIMED = (*LIMITS, RISING)
LOST = {"no_memory": ("distinct_share", RISING), "frozen": ("distinct_share", RISING)}
"""What is to be smaller without the memory, and with a questioner that does not train."""
ANSWERED = (Domain.CHOICE, Domain.MATHS)
"""Domains of the questions with references."""


class SpellCell(FrozenModel):
    """One variant with one seed."""

    variant: str
    seed: int
    tokens: int = Field(description="generated in the phase")
    early: dict[str, tuple[float, ...]] = Field(
        description="of the first steps; empty for a plain phase"
    )
    late: dict[str, tuple[float, ...]] = Field(description="of as many last steps")
    scores: dict[str, float] = Field(description="held-out question -> mean score")


class SpellLine(FrozenModel):
    variant: str
    measure: str
    early: float
    late: Interval
    change: Interval
    by_seed: tuple[float, ...]
    """Changes."""
    shown: bool | None
    """None: reported only."""


def read_cell(variant: str, seed: int, training: Path, evaluation: Path) -> SpellCell:
    """Read the reports of a phase and of the evaluation of its model."""
    lines = (training / STEPS_FILE).read_bytes().splitlines()
    steps = [StepReport.model_validate_json(line).metrics for line in lines]
    count = max(1, min(WINDOW, len(steps) // 2))
    return SpellCell(
        variant=variant,
        seed=seed,
        tokens=sum(row.generated_tokens for row in read_ledger(training / LEDGER_FILE)),
        early=_measured(steps[:count]),
        late=_measured(steps[-count:]),
        scores=read_scores(evaluation),
    )


def read_scores(evaluation: Path) -> dict[str, float]:
    """Mean score by held-out question with a reference, of those with a verdict."""
    samples = [
        one for one in read_table(evaluation / SAMPLES_FILE, SampleResult) if one.domain in ANSWERED
    ]
    return {one.problem_id: one.score / one.decided for one in per_problem(samples) if one.decided}


def lines_of(
    cells: Sequence[SpellCell], starts: Mapping[int, Mapping[str, float]], seed: int
) -> list[SpellLine]:
    """Build the table: the measures of every variant, then its held-out score.

    Args:
        cells: one per variant and seed.
        starts: held-out scores of the start models, by seed.
        seed: of the bootstrap.

    Raises:
        DataError: a cell has other held-out questions than its start model.
    """
    by_variant: dict[str, list[SpellCell]] = {}
    for cell in cells:
        by_variant.setdefault(cell.variant, []).append(cell)
    results: list[SpellLine] = []
    for variant, mine in by_variant.items():
        for name in [name for name in MEASURES if all(name in cell.early for cell in mine)]:
            ends = ([cell.early[name] for cell in mine], [cell.late[name] for cell in mine])
            claimed = variant == PUBLISHED and name in CLAIMED
            results.append(_line(variant, name, ends, seed, claimed=claimed))
        before = [starts[cell.seed] for cell in mine]
        results.append(_held_out(variant, before, [cell.scores for cell in mine], seed))
    return [*results, *_against(by_variant, seed)]


def markdown(lines: Sequence[SpellLine]) -> str:
    words = {None: "reported", True: "shown", False: "not shown"}
    rows = ["| variant | measure | early / before | late / after | change | by seed | |"]
    rows.append("|---|---|---:|---:|---:|---:|---|")
    for line in lines:
        late, change = line.late, line.change
        by_seed = ", ".join(f"{one:+.1f}" for one in line.by_seed)
        rows.append(
            f"| {line.variant} | {line.measure} | {line.early:.1f} "
            f"| {late.mean:.1f} [{late.low:.1f}, {late.high:.1f}] "
            f"| {change.mean:+.1f} [{change.low:.1f}, {change.high:.1f}] "
            f"| {by_seed} | {words[line.shown]} |"
        )
    return "\n".join(rows) + "\n"


Values = Sequence[Sequence[float]]
"""By seed, of steps or of held-out questions."""
Ends = tuple[Values, Values]
"""Early and late, or before and after."""


def _line(variant: str, name: str, ends: Ends, seed: int, *, claimed: bool) -> SpellLine:
    unit = POINTS if name.endswith(("_share", "reward_mean")) else 1.0
    before, after = ([[unit * value for value in part] for part in end] for end in ends)
    old, new = ([value for part in end for value in part] for end in (before, after))
    late, change = bootstrap_mean(new, seed=seed), paired_difference(new, old, seed=seed)
    seeds = [_mean(part) for part in after]
    by_seed = [now - _mean(part) for now, part in zip(seeds, before, strict=True)]
    if name in LIMITS:
        low, high = LIMITS[name]
        is_shown = all(low < value < high for value in (late.low, late.high, *seeds))
    else:
        is_shown = all(value > 0.0 for value in (change.low, *by_seed))
    return SpellLine(
        variant=variant,
        measure=MEASURES[name],
        early=_mean(old),
        late=late,
        change=change,
        by_seed=tuple(by_seed),
        shown=is_shown if claimed else None,
    )


def _against(by_variant: Mapping[str, Sequence[SpellCell]], seed: int) -> list[SpellLine]:
    """Compare the ends of the published variant with those of every other one."""
    ours = by_variant.get(PUBLISHED, ())
    results: list[SpellLine] = []
    for other, cells in by_variant.items():
        if other == PUBLISHED or len(cells) != len(ours):
            continue
        title = f"{PUBLISHED} against {other}"
        if other == PLAIN:
            before, after = ([cell.scores for cell in side] for side in (cells, ours))
            results.append(_held_out(title, before, after, seed))
        for name in LOST.get(other, ()):
            if all(name in cell.late for cell in (*ours, *cells)):
                count = min(len(cell.late[name]) for cell in (*ours, *cells))
                theirs, mine = (
                    [cell.late[name][-count:] for cell in side] for side in (cells, ours)
                )
                results.append(_line(title, name, (theirs, mine), seed, claimed=True))
    return results


def _held_out(
    variant: str,
    before: Sequence[Mapping[str, float]],
    after: Sequence[Mapping[str, float]],
    seed: int,
) -> SpellLine:
    if any(not old or old.keys() != new.keys() for old, new in zip(before, after, strict=True)):
        raise DataError(f"{variant}: the two evaluations have other held-out questions, or none")
    names = [sorted(old) for old in before]
    old, new = (
        [[scores[name] for name in keys] for scores, keys in zip(side, names, strict=True)]
        for side in (before, after)
    )
    return _line(variant, HELD_OUT, (old, new), seed, claimed=True)


def _measured(steps: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, ...]]:
    keys = [name for name in MEASURES if steps and all(f"spell/{name}" in one for one in steps)]
    return {name: tuple(one[f"spell/{name}"] for one in steps) for name in keys}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
