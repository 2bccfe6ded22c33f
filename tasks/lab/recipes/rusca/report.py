"""Cells of the study, and the claims that they do or do not show.

A difference is shown if its 95 % interval, bootstrap over problems or steps, excludes 0 and it
has the claimed sign for every seed. Held-out scores are those of bare prompts, partial credit
included.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from data_schemas.arrow import read_table
from data_schemas.frozen_model import FrozenModel
from data_schemas.reports import (
    GATES_FILE,
    LEDGER_FILE,
    STEPS_FILE,
    Claim,
    GateRecord,
    MismatchDecision,
    StepReport,
)
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.algorithms.intervals import Interval, bootstrap_mean, paired_difference
from tasks.algorithms.suites import per_problem
from tasks.errors import DataError
from tasks.formats.ledgers import read_ledger
from tasks.lab.recipes.rusca.lift import Lift
from tasks.lab.recipes.rusca.shown import SHOWN_FILE, ShownRow
from tasks.lab.recipes.rusca.variants import NONE, PUBLISHED
from tasks.platform.tables import Sheet, claim_sheet

HALF = 0.5
"""Share of the criteria from which a step counts as one with a scaffold."""


class ScaffoldCell(FrozenModel):
    """One variant with one seed."""

    variant: str
    seed: int
    tokens: int = Field(description="generated in the phase")
    contrast: tuple[float, ...] = Field(
        description="share of first draws with reward variance, per step"
    )
    shares: tuple[float, ...] = Field(description="of the criteria shown, per step; 0 without")
    mentions_before: int
    mentions_after: int = Field(description="responses that repeat a criterion, none being shown")
    responses_after: int
    pauses: int
    max_k3: float
    scores: dict[str, float] = Field(description="held-out problem -> mean score")


class ScaffoldReport(FrozenModel):
    max_tokens: int
    lift: Lift
    start: Interval
    claims: tuple[Claim, ...]
    scores: dict[str, Interval] = Field(description="variant -> held-out score over all seeds")
    cells: tuple[ScaffoldCell, ...]


def read_cell(variant: str, seed: int, training: Path, held_out_evaluation: Path) -> ScaffoldCell:
    """Read the reports of a phase and of the held-out evaluation of its model."""
    steps = [
        StepReport.model_validate_json(line)
        for line in (training / STEPS_FILE).read_bytes().splitlines()
    ]
    gates = [
        GateRecord.model_validate_json(line)
        for line in (training / GATES_FILE).read_bytes().splitlines()
    ]
    path = training / SHOWN_FILE
    rows = read_table(path, ShownRow) if path.exists() else []
    last = max((row.step for row in rows if row.shown), default=0)
    after = [row for row in rows if row.step > last]
    ledger = read_ledger(training / LEDGER_FILE)
    return ScaffoldCell(
        variant=variant,
        seed=seed,
        tokens=sum(row.generated_tokens for row in ledger),
        contrast=tuple(1.0 - step.metrics["zero_variance/share"] for step in steps),
        shares=tuple(step.metrics.get("scaffold/share", 0.0) for step in steps),
        mentions_before=sum(row.mentions for row in rows if row.step <= last),
        mentions_after=sum(row.mentions for row in after),
        responses_after=len(after),
        pauses=sum(gate.decision is MismatchDecision.PAUSE for gate in gates),
        max_k3=max((gate.k3 for gate in gates), default=0.0),
        scores=read_scores(held_out_evaluation),
    )


def read_scores(held_out_evaluation: Path) -> dict[str, float]:
    """Mean score by held-out problem, of those with a verdict."""
    samples = read_table(held_out_evaluation / SAMPLES_FILE, SampleResult)
    return {one.problem_id: one.score / one.decided for one in per_problem(samples) if one.decided}


def report_of(
    settings: EvaluationSettings,
    cells: Sequence[ScaffoldCell],
    start: dict[str, float],
    lift: Lift,
    max_tokens: int,
) -> ScaffoldReport:
    """Build the report.

    Args:
        settings: of the held-out evaluations; the bootstrap has their seed.
        cells: one per variant and seed, each variant with the same seeds.
        start: held-out score by problem of the start model.
        lift: of the gate.
        max_tokens: of every phase.

    Raises:
        DataError: a cell is missing.
    """
    by_name: dict[str, list[ScaffoldCell]] = {}
    for cell in cells:
        by_name.setdefault(cell.variant, []).append(cell)
    ours = by_name[PUBLISHED]
    for name, variant_cells in by_name.items():
        if [cell.seed for cell in variant_cells] != [cell.seed for cell in ours]:
            raise DataError(f"the variant {name!r} does not have the seeds of {PUBLISHED!r}")
    claims = [_mentions(ours), _pauses(cells)]
    if NONE in by_name:
        claims.insert(0, _contrast(settings, ours, by_name[NONE]))
    claims[-2:-2] = [
        _better(settings, ours, others, name)
        for name, others in by_name.items()
        if name != PUBLISHED
    ]
    return ScaffoldReport(
        max_tokens=max_tokens,
        lift=lift,
        start=bootstrap_mean(list(start.values()), seed=settings.seed),
        claims=tuple(claims),
        scores={
            name: bootstrap_mean(list(_over_seeds(variant_cells).values()), seed=settings.seed)
            for name, variant_cells in by_name.items()
        },
        cells=tuple(cells),
    )


def _contrast(
    settings: EvaluationSettings, ours: Sequence[ScaffoldCell], theirs: Sequence[ScaffoldCell]
) -> Claim:
    """Compare the share of first draws with reward variance, in the steps with a scaffold."""
    pairs = [_scaffolded_steps(one, two) for one, two in zip(ours, theirs, strict=True)]
    claim = "share of first draws with contrast, minus without scaffold, while criteria are shown"
    if not all(pairs):
        return Claim(claim=claim, number="no such step", interval="", seeds="", shown=False)
    differences = [a - b for pair in pairs for a, b in pair]
    by_seed = [float(np.mean([a - b for a, b in pair])) for pair in pairs]
    return _difference(claim, bootstrap_mean(differences, seed=settings.seed), by_seed)


def _scaffolded_steps(ours: ScaffoldCell, theirs: ScaffoldCell) -> list[tuple[float, float]]:
    return [
        (one, two)
        for one, two, share in zip(ours.contrast, theirs.contrast, ours.shares, strict=False)
        if share >= HALF
    ]


def _better(
    settings: EvaluationSettings,
    ours: Sequence[ScaffoldCell],
    theirs: Sequence[ScaffoldCell],
    name: str,
) -> Claim:
    """Compare held-out scores under bare prompts, paired by problem."""
    by_seed = []
    for one, two in zip(ours, theirs, strict=True):
        keys = one.scores.keys() & two.scores.keys()
        by_seed.append(float(np.mean([one.scores[key] - two.scores[key] for key in keys])))
    mine, other = _over_seeds(ours), _over_seeds(theirs)
    keys = [key for key in mine if key in other]
    result = paired_difference(
        [mine[key] for key in keys], [other[key] for key in keys], seed=settings.seed
    )
    return _difference(
        f"held-out score under bare prompts, minus that of '{name}'", result, by_seed
    )


def _difference(claim: str, interval: Interval, by_seed: Sequence[float]) -> Claim:
    return Claim(
        claim=claim,
        number=f"{100 * interval.mean:+.1f} points",
        interval=f"[{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]",
        seeds=", ".join(f"{100 * value:+.1f}" for value in by_seed),
        shown=interval.low > 0.0 and min(by_seed) > 0.0,
    )


def _mentions(ours: Sequence[ScaffoldCell]) -> Claim:
    after, before = (sum(c.mentions_after for c in ours), sum(c.mentions_before for c in ours))
    responses = sum(cell.responses_after for cell in ours)
    return Claim(
        claim="responses that repeat a criterion after the last one was shown",
        number=f"{after} of {responses} (before: {before})",
        interval="",
        seeds=", ".join(str(cell.mentions_after) for cell in ours),
        shown=responses > 0 and after == 0,
    )


def _pauses(cells: Sequence[ScaffoldCell]) -> Claim:
    pauses = sum(cell.pauses for cell in cells)
    return Claim(
        claim="steps that the mismatch gate stopped, all variants",
        number=f"{pauses} (largest k3 {max(cell.max_k3 for cell in cells):.1e})",
        interval="",
        seeds="",
        shown=pauses == 0,
    )


def _over_seeds(cells: Sequence[ScaffoldCell]) -> dict[str, float]:
    """Mean score of every problem over the seeds that have one for it."""
    results: dict[str, list[float]] = {}
    for cell in cells:
        for name, score in cell.scores.items():
            results.setdefault(name, []).append(score)
    return {name: sum(values) / len(values) for name, values in results.items()}


def sheet_of(report: ScaffoldReport) -> Sheet:
    """Tabulate the study."""
    return claim_sheet("RuscaRL's scaffold", report.claims, conditions(report))


def conditions(report: ScaffoldReport) -> str:
    """Say under which conditions the numbers were measured."""
    lift, cells = report.lift, report.cells
    tokens = [cell.tokens for cell in cells]
    variants = "; ".join(f"{name} {_percent(score)}" for name, score in report.scores.items())
    return (
        f"Gate: with all criteria in the prompt the start model scores {lift.shown:.1%}, without "
        f"{lift.bare:.1%}: {_percent(lift.lift)} on {len(lift.scores)} problems that are trained "
        f"on. {len({cell.seed for cell in cells})} seeds, {min(tokens):,} to {max(tokens):,} "
        f"generated tokens per phase, {len(cells[0].scores)} held-out problems. Held-out score "
        f"under bare prompts: start {_percent(report.start)}; {variants}."
    )


def _percent(value: Interval) -> str:
    return f"{value.mean:.1%} [{value.low:.1%}, {value.high:.1%}]"
