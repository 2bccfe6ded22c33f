"""What is measured of one cell of a study, read from the reports of its stages.

A report is recognised by its files: a phase of RL, an evaluation, a judge; a recipe's own report
may have `metrics.json`, numbers by name.

    tokens             everything generated until a checkpoint: grading, drafts, what no update used
    use/...            share of the tokens that RL generated, by what became of them
    of all tokens/...  likewise, with those of grading among them
    outcome/...        share of the tokens that RL generated, by what became of their groups
    zero variance/...  share of zero-variance groups, mean over steps
    left behind        share of an update's responses that the term `stale` leaves out
    entropy/...        of the policy before the first and the last step of RL, in nats a token
    .../relative variance  of the steps of RL: gradient norm, length, reward, tokens of an update
    router shift       mean factor of RSPO over the steps, where it is on
    foreseen/...       how well a rule ranks the groups of a phase by zero variance (AUC)
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.ledgers import GroupOutcome, LedgerRow, TokenUse
from data_schemas.pass_rates import PROBLEMS_FILE, GradedProblem
from data_schemas.reports import (
    LEDGER_FILE,
    SKIPPED_FILE,
    STEPS_FILE,
    TIMING_FILE,
    StepReport,
    StepTiming,
)
from data_schemas.samples import SampleResult
from data_schemas.study import Measures, StudyCell
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.algorithms.token_uses import token_uses
from tasks.errors import DataError
from tasks.formats.ledgers import read_ledger
from tasks.rl.foresight import foresee
from tasks.store.objects import find_beside

LAST_STEPS = 10
TRAINING = "training/"
"""In front of the checkpoint in the name of a phase's report."""
METRICS_FILE = "metrics.json"
REPORT_FILE = "report.json"
"""Name of the report of grading, and of a judge, which has `judge_confusion` in it."""
IN_A_LOSS = (TokenUse.TRAINED, TokenUse.TRAINED_ZVP, TokenUse.TAUGHT)
UNTRAINED = (
    GroupOutcome.ZERO_VARIANCE_PARTIAL,
    GroupOutcome.ZERO_VARIANCE_NOISE,
    GroupOutcome.ZERO_VARIANCE_JUDGED,
    GroupOutcome.ZERO_VARIANCE_IDLE,
)
"""What `use/zero_variance` consists of."""
_COLUMNS = {
    "zero variance/first draws": "zero_variance/share",
    "zero variance/trained batch": "zero_variance/trained_share",
    "clipped": "policy/clip_share",
    "staleness": "rollout/staleness_versions",
    "mismatch/nats": "mismatch/mean_abs_logprob",
    "mismatch/k3": "mismatch/k3",
}
STEADINESS = "/relative variance"
"""End of the names of measures of how steady the steps of RL were."""
_STEADY = {
    "gradient": "policy/grad_norm",
    "length": "rollout/length_tokens",
    "mean reward": "reward/mean",
    "trained tokens": "policy/trained_tokens",
}
"""What C3PO calls stable, by step. The tokens of an update stand for the throughput: a machine that
is shared keeps no steady seconds."""
_OF_TERMS = {"left behind": "policy/stale_share", "router shift": "policy/router_shift"}
"""Reported by the terms of a phase, where they are listed."""


def measure(cell: StudyCell, reports: Mapping[str, Path], graded: Sequence[Path]) -> Measures:
    """Read the reports of a cell.

    Args:
        cell: what was run.
        reports: folders by name; evaluations by checkpoint, phases by 'training/' and theirs.
        graded: folders of graded problems.
    """
    metrics: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    domains: dict[str, str] = {}
    accuracy: dict[str, dict[str, float | None]] = {}
    phases: dict[str, Path] = {}
    for name, folder in reports.items():
        if name.startswith(TRAINING):
            phases[name.removeprefix(TRAINING)] = folder
        elif (folder / SAMPLES_FILE).exists():
            table = read_table(folder / SAMPLES_FILE, SampleResult)
            # Requests that see what a model refuses are no problems of the world.
            samples = [sample for sample in table if not sample.request]
            domains |= families(samples)
            accuracy[name] = accuracy_by_problem(samples)
        elif (folder / METRICS_FILE).exists():
            metrics |= json.loads((folder / METRICS_FILE).read_bytes())
        elif (folder / REPORT_FILE).exists():
            _read_judge(json.loads((folder / REPORT_FILE).read_bytes()), metrics, intervals)
        else:
            raise DataError(f"the report {name!r} has none of the files that a study reads")
    settings = json.loads(cell.settings)
    settings = settings.get("pipeline", settings)  # where a run has more settings than these
    samples_per_problem = settings.get("grading", {}).get("samples", 0)
    grading = round(samples_per_problem * sum(_graded_tokens(folder) for folder in graded))
    tokens, steps, seconds = _read_phases(phases, grading, metrics, cell.checkpoints)
    if len(graded) == 1 and (graded[0] / PROBLEMS_FILE).exists():
        metrics |= _foreseen(phases, read_table(graded[0] / PROBLEMS_FILE, GradedProblem))
    return Measures(
        variant=cell.variant,
        seed=cell.seed,
        metrics=metrics,
        intervals=intervals,
        domains=domains,
        accuracy=accuracy,
        tokens=tokens,
        steps=steps,
        seconds=seconds,
    )


def families(samples: Sequence[SampleResult]) -> dict[str, str]:
    """Name the family of every problem: its domain, with its source where a domain has several."""
    sources: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        sources[sample.domain.value].add(sample.source)
    return {
        one.problem_id: one.domain.value
        if len(sources[one.domain.value]) == 1
        else f"{one.domain.value} of {one.source}"
        for one in samples
    }


def accuracy_by_problem(samples: Sequence[SampleResult]) -> dict[str, float | None]:
    """Share of scored responses that solved a problem; None if no response has a verdict."""
    solved: dict[str, list[bool]] = defaultdict(list)
    for sample in samples:
        solved[sample.problem_id] += [sample.solved] if sample.scored else []
    return {name: sum(scores) / len(scores) if scores else None for name, scores in solved.items()}


def _graded_tokens(folder: Path) -> float:
    """Tokens of one response to every problem that was graded, those that it dropped included."""
    domains = json.loads((folder / REPORT_FILE).read_bytes())["domains"].values()
    return sum(domain["graded"] * domain["mean_tokens"] for domain in domains)


def _read_phases(
    phases: Mapping[str, Path], grading: int, metrics: dict[str, float], names: Sequence[str]
) -> tuple[dict[str, int], dict[str, int], dict[str, float]]:
    """Add the metrics of all phases together; return what was spent until every checkpoint.

    Returns:
        (tokens, steps, CPU seconds).
    """
    tokens, steps_until, spent = (
        dict.fromkeys(names, 0),
        dict.fromkeys(names, 0),
        dict.fromkeys(names, 0.0),
    )
    rows, steps, seconds = [], [], 0.0
    for name, folder in phases.items():
        if not (folder / SKIPPED_FILE).exists():
            rows += read_ledger(folder / LEDGER_FILE)
            lines = (folder / STEPS_FILE).read_bytes().splitlines()
            steps += [StepReport.model_validate_json(line) for line in lines]
            timings = find_beside(folder, TIMING_FILE).read_bytes().splitlines()
            seconds += sum(
                sum(StepTiming.model_validate_json(line).cpu_seconds.values()) for line in timings
            )
        tokens[name] = grading + sum(row.generated_tokens for row in rows)
        steps_until[name], spent[name] = len(steps), seconds
    if phases and "merged" in tokens:
        # Grading is of the merged model: what is spent before the first step of RL.
        tokens["merged"] = grading
    if steps:
        metrics |= _phase_metrics(rows, steps, grading)
        metrics |= {
            "tokens/grading": grading,
            "tokens/rl": sum(row.generated_tokens for row in rows),
            "tokens": grading + sum(row.generated_tokens for row in rows),
            "steps": len(steps),
            "cpu seconds of rl": seconds,
        }
    return tokens, steps_until, spent


def _foreseen(phases: Mapping[str, Path], problems: Sequence[GradedProblem]) -> dict[str, float]:
    """Judge the rules that foresee zero variance on every phase that ran."""
    ran = {name: path for name, path in phases.items() if not (path / SKIPPED_FILE).exists()}
    forecasts = foresee([read_ledger(path / LEDGER_FILE) for path in ran.values()], problems)
    return {
        f"foreseen/{phase}/{one.rule}": one.ranking
        for phase, rules in zip(ran, forecasts, strict=True)
        for one in rules
        if one.ranking is not None
    }


def _phase_metrics(
    rows: Sequence[LedgerRow], steps: Sequence[StepReport], grading: int
) -> dict[str, float]:
    generated = max(1, sum(row.generated_tokens for row in rows))
    uses = token_uses(rows, grading)
    metrics = {
        f"use/{use.value}": count / generated
        for use, count in uses.items()
        if use is not TokenUse.GRADING  # of no phase: `tokens/grading`
    }
    metrics["use/in a loss"] = sum(uses[use] for use in IN_A_LOSS) / generated
    metrics |= {
        f"of all tokens/{use.value}": uses[use] / (generated + grading)
        for use in (*IN_A_LOSS, TokenUse.GRADING)
    }
    for outcome in UNTRAINED:
        tokens = sum(row.generated_tokens for row in rows if row.outcome is outcome)
        metrics[f"outcome/{outcome.value}"] = tokens / generated
    for name, column in _COLUMNS.items():
        metrics[name] = sum(step.metrics[column] for step in steps) / len(steps)
    metrics["entropy/first step"] = steps[0].metrics["policy/entropy_nats"]
    metrics["entropy/last step"] = steps[-1].metrics["policy/entropy_nats"]
    for name, column in _OF_TERMS.items():
        values = [one.metrics[column] for one in steps if column in one.metrics]
        if values:
            metrics[name] = sum(values) / len(values)
    last = steps[-LAST_STEPS:]
    metrics["reward"] = sum(step.metrics["reward/mean"] for step in last) / len(last)
    for name, column in _STEADY.items():
        metrics[f"{name}{STEADINESS}"] = _relative_variance(
            [step.metrics[column] for step in steps]
        )
    return metrics


def _relative_variance(values: Sequence[float]) -> float:
    """Variance over the squared mean; of a mean of 0 it is huge, not an error."""
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values) / max(mean**2, 1e-30)


def _read_judge(
    report: Mapping[str, object],
    metrics: dict[str, float],
    intervals: dict[str, tuple[float, float]],
) -> None:
    measures = report["measures"]
    assert isinstance(measures, list)
    for one in measures:
        for side in ("judge", "scalar", "difference"):
            name = f"{one['name']}/{side}"
            metrics[name] = one[side]["mean"]
            intervals[name] = one[side]["low"], one[side]["high"]
    for side in ("judge", "scalar"):
        preferred = [report[f"{side}_confusion"][label] for label in ("A", "B")]  # type: ignore[index]
        calls = sum(sum(row.values()) for row in preferred)
        ties = sum(count for row in preferred for label, count in row.items() if label not in "AB")
        metrics[f"called a tie, but is none/{side}"] = ties / max(1, calls)
