"""What one seed's synthesis measured, and the claims that all seeds do or do not show.

A difference is shown if its 95 % interval excludes 0 and it has the claimed sign for every seed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from data_schemas.arrow import read_table
from data_schemas.frozen_model import FrozenModel
from data_schemas.pass_rates import GradedProblem
from data_schemas.reports import Claim
from data_schemas.rows import GRADED, HELD_OUT, PROBLEMS, QUARANTINE, Problem, QuarantinedItem
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.algorithms.intervals import Interval, bootstrap_mean
from tasks.algorithms.suites import per_problem
from tasks.lab.recipes.promptcot.labels import audit
from tasks.lab.recipes.promptcot.likelihood import MIN_VALID_SHARE, Likelihood
from tasks.lab.recipes.promptcot.likelihood import REPORT as LIKELIHOOD
from tasks.lab.recipes.promptcot.records import (
    LABELLED,
    PAIRS,
    WRITTEN,
    LabelledProblem,
    PreferencePair,
    WrittenProblem,
)
from tasks.lab.recipes.promptcot.wording import parse
from tasks.platform.tables import Sheet, claim_sheet


class SynthesisCell(FrozenModel):
    """One seed."""

    before: Likelihood = Field(description="writer and planner of the cold start")
    expected: Likelihood = Field(description="writer of the cold start, planner of the E-step")
    after: Likelihood = Field(description="writer of the M-step, planner of the E-step")
    written: int
    left_out: dict[str, int] = Field(description="reason -> written problems; '' = kept")
    labels: int
    label_errors: int = Field(description="labels that are not the parser's answer")
    trained: int = Field(description="problems within the bounds of grading")
    trained_label_errors: int
    hard: tuple[float, ...] = Field(description="1 = a synthesised problem is within the bounds")
    drawn_hard: tuple[float, ...] = Field(description="the same of drawn problems")
    reproduced: int = Field(description="curated problems with the text of a held-out one")
    pairs: int
    scores_before: dict[str, float] = Field(description="held-out problem -> mean score")
    scores_after: dict[str, float] = Field(description="the same after DPO")
    scores_rl: dict[str, float] = Field(description="after RL on synthesised problems")
    scores_rl_drawn: dict[str, float] = Field(description="after RL on as many drawn problems")


class SynthesisReport(FrozenModel):
    """The table, and what it was computed from."""

    claims: tuple[Claim, ...]
    cells: tuple[SynthesisCell, ...]


def read_cell(
    likelihoods: Mapping[str, Path],
    problems: Path,
    labelled: Path,
    curated: tuple[Path, Path],
    graded: tuple[Path, Path],
    preference: Path,
    evaluations: Sequence[Path],
) -> SynthesisCell:
    """Read what one seed measured.

    Args:
        likelihoods: folders by field of the cell.
        problems: folder of the problems.
        labelled: folder of their labels.
        curated: folders of the curated problems and of the held-out suites.
        graded: folders of synthesised and of drawn problems.
        preference: folder of DPO's report.
        evaluations: folders of the evaluations before and after DPO, and after RL on synthesised
            and on drawn problems.
    """
    counts = count_reasons(problems)
    num_labels, wrong = audit(read_table(labelled / LABELLED, LabelledProblem))
    num_trained, num_trained_wrong = _read_trained(graded[0])
    before, after, synthesised, drawn = (_read_scores(folder) for folder in evaluations)
    return SynthesisCell(
        **{
            name: Likelihood.model_validate_json((folder / LIKELIHOOD).read_bytes())
            for name, folder in likelihoods.items()
        },
        written=sum(counts.values()),
        left_out=dict(counts),
        labels=num_labels,
        label_errors=wrong,
        trained=num_trained,
        trained_label_errors=num_trained_wrong,
        hard=_read_hard(graded[0]),
        drawn_hard=_read_hard(graded[1]),
        reproduced=_count_reproduced(*curated),
        pairs=len(read_table(preference / PAIRS, PreferencePair)),
        scores_before=before,
        scores_after=after,
        scores_rl=synthesised,
        scores_rl_drawn=drawn,
    )


def count_reasons(folder: Path) -> Counter[str]:
    """Count written problems by the reason for which they were left out."""
    return Counter(one.reason for one in read_table(folder / WRITTEN, WrittenProblem))


def _read_hard(folder: Path) -> tuple[float, ...]:
    """Say for every problem with a pass rate whether it is within the bounds of grading."""
    table = read_table(folder / GRADED, GradedProblem)
    refused = read_table(folder / QUARANTINE, QuarantinedItem)
    rated = [one for one in table if one.pass_rate is not None]
    return (1.0,) * len(rated) + (0.0,) * len(refused)


def _read_trained(folder: Path) -> tuple[int, int]:
    """Count the problems within the bounds, and those whose label the parser contradicts."""
    table = read_table(folder / GRADED, GradedProblem)
    wrong = 0
    for problem in table:
        truth = parse(problem.prompt_text)
        wrong += truth is None or f'"{truth.answer}"' not in problem.answer
    return len(table), wrong


def _count_reproduced(synthesised: Path, held_out: Path) -> int:
    """Count the curated problems with the text of a held-out one."""
    examined = {one.prompt_text for one in read_table(held_out / HELD_OUT, Problem)}
    problems = read_table(synthesised / PROBLEMS, Problem)
    return sum(one.prompt_text in examined for one in problems)


def _read_scores(held_out_evaluation: Path) -> dict[str, float]:
    """Mean score by held-out problem, of those with a verdict."""
    samples = read_table(held_out_evaluation / SAMPLES_FILE, SampleResult)
    return {one.problem_id: one.score / one.decided for one in per_problem(samples) if one.decided}


def report_of(cells: Sequence[SynthesisCell], seed: int) -> SynthesisReport:
    """Make the table.

    Args:
        cells: one per seed.
        seed: of the bootstrap.
    """
    claims = (
        _lower(cells, "after the E-step", lambda cell: cell.expected, seed),
        _lower(cells, "after E-step and M-step", lambda cell: cell.after, seed),
        _valid(cells, "cold start", lambda cell: cell.before),
        _valid(cells, "M-step", lambda cell: cell.after),
        _labels(cells),
        _harder(cells, seed),
        _reproduced(cells),
        _gained(cells, _dpo(cells), lambda c: (c.scores_before, c.scores_after), seed),
        _gained(
            cells,
            "RL on as many drawn problems, minus before",
            lambda c: (c.scores_before, c.scores_rl_drawn),
            seed,
        ),
        _gained(
            cells,
            "RL on synthesised problems, minus before",
            lambda c: (c.scores_before, c.scores_rl),
            seed,
        ),
        _gained(
            cells,
            "RL on synthesised problems, minus RL on drawn ones",
            lambda c: (c.scores_rl_drawn, c.scores_rl),
            seed,
        ),
    )
    return SynthesisReport(claims=claims, cells=tuple(cells))


def _lower(
    cells: Sequence[SynthesisCell],
    when: str,
    later: Callable[[SynthesisCell], Likelihood],
    seed: int,
) -> Claim:
    """Compare the bound of the negative log-likelihood with that of the cold start, by problem."""
    parts = [
        [
            later(cell).nll[name] - nats
            for name, nats in cell.before.nll.items()
            if name in later(cell).nll
        ]
        for cell in cells
    ]
    result = bootstrap_mean([value for part in parts for value in part], seed=seed)
    means = [float(np.mean(part)) for part in parts]
    start = float(np.mean([value for cell in cells for value in cell.before.nll.values()]))
    return Claim(
        claim=f"NLL of an unseen problem given its concepts, {when}, minus cold start",
        number=f"{result.mean:+.2f} nats (of {start:.2f})",
        interval=f"[{result.low:+.2f}, {result.high:+.2f}]",
        seeds=", ".join(f"{value:+.2f}" for value in means),
        shown=result.high < 0.0 and max(means) < 0.0,
    )


def _valid(
    cells: Sequence[SynthesisCell], when: str, which: Callable[[SynthesisCell], Likelihood]
) -> Claim:
    shares = [which(cell).valid_share for cell in cells]
    return Claim(
        claim=f"valid share of decoded problems, {when}; at least {MIN_VALID_SHARE:.0%}",
        number=f"{np.mean(shares):.1%}",
        interval="",
        seeds=", ".join(f"{share:.1%}" for share in shares),
        shown=min(shares) >= MIN_VALID_SHARE,
    )


def _labels(cells: Sequence[SynthesisCell]) -> Claim:
    labels, wrong = sum(cell.labels for cell in cells), sum(cell.label_errors for cell in cells)
    trained = sum(cell.trained for cell in cells)
    bad = sum(cell.trained_label_errors for cell in cells)
    return Claim(
        claim="majority labels that are wrong by the parser; of those trained on",
        number=f"{wrong} of {labels} ({wrong / labels:.1%}); {bad} of {trained}",
        interval="",
        seeds=", ".join(f"{cell.label_errors / cell.labels:.1%}" for cell in cells),
        shown=wrong == 0,
    )


def _harder(cells: Sequence[SynthesisCell], seed: int) -> Claim:
    ours = bootstrap_mean([value for cell in cells for value in cell.hard], seed=seed)
    theirs = bootstrap_mean([value for cell in cells for value in cell.drawn_hard], seed=seed)
    by_seed = [float(np.mean(cell.hard) - np.mean(cell.drawn_hard)) for cell in cells]
    return Claim(
        claim="share with a pass rate in (0, .5), synthesised against drawn",
        number=f"{ours.mean:.1%} against {theirs.mean:.1%}",
        interval=f"{_range(ours)} against {_range(theirs)}",
        seeds=", ".join(f"{100 * value:+.1f}" for value in by_seed),
        shown=ours.low > theirs.high and min(by_seed) > 0.0,
    )


def _range(interval: Interval) -> str:
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _reproduced(cells: Sequence[SynthesisCell]) -> Claim:
    curated = sum(cell.reproduced for cell in cells)
    return Claim(
        claim="curated problems with the text of a held-out one",
        number=str(curated),
        interval="",
        seeds=", ".join(str(cell.reproduced) for cell in cells),
        shown=curated == 0,
    )


def _dpo(cells: Sequence[SynthesisCell]) -> str:
    pairs = [cell.pairs for cell in cells]
    return f"DPO on {min(pairs)} to {max(pairs)} pairs, minus before"


def _gained(
    cells: Sequence[SynthesisCell],
    what: str,
    sides: Callable[[SynthesisCell], tuple[Mapping[str, float], Mapping[str, float]]],
    seed: int,
) -> Claim:
    """Compare two models on the held-out problems, paired."""
    parts = [
        [later[name] - score for name, score in earlier.items()]
        for earlier, later in map(sides, cells)
    ]
    result = bootstrap_mean([value for part in parts for value in part], seed=seed)
    means = [100 * float(np.mean(part)) for part in parts]
    return Claim(
        claim=f"held-out score after {what}",
        number=f"{100 * result.mean:+.1f} points",
        interval=f"[{100 * result.low:+.1f}, {100 * result.high:+.1f}]",
        seeds=", ".join(f"{value:+.1f}" for value in means),
        shown=result.low > 0.0 and min(means) > 0.0,
    )


def sheet_of(report: SynthesisReport) -> Sheet:
    """Tabulate the study."""
    return claim_sheet("Synthesised problems", report.claims, conditions(report))


def conditions(report: SynthesisReport) -> str:
    """Say what the numbers were measured on."""
    counts: Counter[str] = Counter()
    for cell in report.cells:
        counts.update(cell.left_out)
    num_kept = counts.pop("", 0)
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    return (
        f"{len(report.cells)} seeds; {num_kept} of {sum(c.written for c in report.cells)} written "
        f"problems kept, left out: {reasons or 'none'}. NLL: an upper bound, from samples of the "
        f"planner, on {len(report.cells[0].before.nll)} problems per seed that nothing was trained "
        f"on. Grading keeps {sum(c.trained for c in report.cells)} problems by the solver's pass "
        "rate against the label."
    )
