"""The parts of a run's report, as records for the template."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticUndefined, to_jsonable_python

from data_schemas.ledgers import TokenUse
from data_schemas.reports import (
    PLOTS_FILE,
    Comparison,
    EvaluationReport,
    Plot,
    StepReport,
)
from data_schemas.rl_settings import RLSettings
from tasks.algorithms.floors import at_floor
from tasks.algorithms.losses.table import find as find_loss
from tasks.pages import figures, wording
from tasks.pages.explanation import flat
from tasks.pages.inputs import read_steps, read_tuning, suite
from tasks.pages.stage_rows import StageRow

_PLOTS = TypeAdapter(list[Plot])
PHASE_PLOTS: tuple[Plot, ...] = (
    ("reward/mean", "Reward", "mean score of the responses with a verdict", 1.0),
    ("reward/solved_share", "Solved", "% of the responses with a verdict", 100.0),
    (
        "reward/above_graded",
        "Solved above grading",
        "% points, against the pass rate of the same prompts when they were graded",
        100.0,
    ),
    (
        "zero_variance/share",
        "Zero-variance groups",
        "% of prompts whose responses all earn the same",
        100.0,
    ),
    (
        "domains/moved_share",
        "Prompts in other domains",
        "% of the trained prompts, than the shares of the settings ask for: skips move them",
        100.0,
    ),
    ("policy/entropy_nats", "Entropy", "nats per token; a fall to zero ends exploration", 1.0),
    ("rollout/length_tokens", "Response length", "tokens per response", 1.0),
    (
        "mismatch/mean_abs_logprob",
        "Train / rollout mismatch",
        "mean |\N{GREEK CAPITAL LETTER DELTA} log p| per token between the two engines",
        1.0,
    ),
    ("mismatch/k3", "Mismatch, k3", "estimate of their KL divergence, nats", 1.0),
    (
        "mismatch/abs_logprob_p999",
        "Mismatch, largest tokens",
        "|\N{GREEK CAPITAL LETTER DELTA} log p| that one token in a thousand exceeds",
        1.0,
    ),
    (
        "mismatch/sequence_log_ratio",
        "Mismatch of a response",
        "|\N{GREEK CAPITAL LETTER DELTA} log p| of a whole response, mean, nats",
        1.0,
    ),
    ("mismatch/route_disagreement", "Expert choices that differ", "% of routed tokens", 100.0),
    ("policy/clip_share", "Clipped", "% of tokens outside the clip range", 100.0),
    ("policy/grad_norm", "Gradient norm", "before clipping, mean over the updates of a step", 1.0),
)
"""Metric, title, note, factor; a recipe adds its own in PLOTS_FILE of a phase's report."""
GENERATED = "rollout/generated_tokens"
TOKEN_USES = (
    (TokenUse.TRAINED, "trained", "#1a7f5a"),
    (TokenUse.TRAINED_ZVP, "trained by RL-ZVP", "#8cc7ad"),
    (TokenUse.TAUGHT, "taught by a teacher", "#a7d36b"),
    (TokenUse.REGULARISED, "in an auxiliary term alone", "#5fb7b2"),
    (TokenUse.CUT, "beyond the token budget", "#d9822b"),
    (TokenUse.MASKED, "masked by the correction", "#d98cb3"),
    (TokenUse.DROPPED, "of low entropy, not trained", "#7a8794"),
    (TokenUse.SINGLETON, "no other choice in sampling", "#b9a58c"),
    (TokenUse.NO_ADVANTAGE, "without advantage", "#c3ccd4"),
    (TokenUse.ZERO_VARIANCE, "zero variance, untrained", "#e3bd4f"),
    (TokenUse.SURPLUS, "replaced by a refill", "#b3372f"),
    (TokenUse.UNSCORED, "without verdicts", "#6b5aa8"),
    (TokenUse.IN_FLIGHT, "in flight", "#3f7fb5"),
    (TokenUse.DRAFT, "drafts", "#7d5a3c"),
)
"""Use, label, colour; from the bottom of the chart to the top."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One plot with its title and note."""

    title: str
    note: str
    numbers: str
    """The key numbers, at the end of the title."""
    svg: str
    key: tuple[tuple[str, str], ...] = ()
    """Colour and what it stands for."""


@dataclass(frozen=True, slots=True)
class AccuracyCell:
    """One accuracy, or length, of a table of suites."""

    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One suite over all models."""

    label: str
    problems: str
    cells: tuple[AccuracyCell, ...]


@dataclass(frozen=True, slots=True)
class SuiteSection:
    """Suites of one kind."""

    title: str
    rows: tuple[SuiteRow, ...]


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """Accuracy per suite and model, and of answers without one."""

    models: tuple[str, ...]
    """Columns; the last ones are baselines."""
    groups: tuple[SuiteSection, ...]


@dataclass(frozen=True, slots=True)
class FloorLine:
    """A task family in which the model is not above a text that does no task."""

    family: str
    text: str
    score: str
    difference: str
    interval: str


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule of the gate."""

    outcome: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class StageLine:
    """One line of the stage table."""

    stage: str
    state: str
    kind: str
    time: str
    rows_in: str
    rows_out: str
    why: str


@dataclass(frozen=True, slots=True)
class SettingsLine:
    """One setting."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class SettingsGroup:
    """The settings of one stage."""

    title: str
    note: str
    rows: tuple[SettingsLine, ...]


def progression_charts(
    progression: Sequence[EvaluationReport], gains: Sequence[Comparison]
) -> tuple[Chart, ...]:
    """Draw the accuracy of every checkpoint and the gain of every task family."""
    charts = []
    num_rows = max(len(progression), len(gains))
    if any(suite(report, "all") for report in progression):
        charts.append(
            Chart(
                "Accuracy by checkpoint",
                "share of held-out responses that solve their problem",
                "",
                figures.progression_figure(progression, "progression", num_rows),
            )
        )
    if gains:
        name = progression[-1].model if progression else "candidate"
        charts.append(
            Chart(
                f"{name} against {wording.parent_name(gains[0].parent)}",
                "paired difference per task family; grey intervals include zero",
                "",
                figures.gains_figure(gains, "gains", num_rows),
            )
        )
    return tuple(charts)


def suite_table(progression: Sequence[EvaluationReport]) -> SuiteTable | None:
    """Lay out every measured suite; a kind with a single member is omitted as redundant."""
    if not progression:
        return None
    names = [report.model for report in progression]
    names += [one.name for one in progression[-1].baselines]
    return SuiteTable(tuple(names), _groups(progression, _suite_row))


def length_table(progression: Sequence[EvaluationReport]) -> SuiteTable | None:
    """Lay out the mean length of a response in every measured suite, in tokens.

    None where no report has lengths, as those of earlier versions.
    """
    if not any(score.mean_tokens is not None for one in progression for score in one.suites):
        return None
    names = tuple(report.model for report in progression)
    return SuiteTable(names, _groups(progression, _length_row))


def _groups(
    progression: Sequence[EvaluationReport],
    row: Callable[[str, Sequence[EvaluationReport]], SuiteRow],
) -> tuple[SuiteSection, ...]:
    """Group the suites by kind."""
    names = list(dict.fromkeys(score.suite for report in progression for score in report.suites))
    groups = [SuiteSection("", (row("all", progression),))] if "all" in names else []
    for kind, title in (
        ("domain", "by task family"),
        ("language", "by language"),
        ("level", "by difficulty, as the source states it"),
        ("source", "by source"),
        ("slice", "by month of the held-out rows"),
        ("harmful", "harmful requests that are refused"),
        ("harmless", "harmless requests that resemble them and are answered"),
    ):
        members = [name for name in names if name.startswith(f"{kind}:")]
        if len(members) > 1:
            groups.append(SuiteSection(title, tuple(row(name, progression) for name in members)))
    return tuple(groups)


def phase_charts(phases: Mapping[str, Path]) -> tuple[Chart, ...]:
    """Draw every known metric that at least one phase reported."""
    reports = {name: read_steps(folder) for name, folder in phases.items()}
    charts = _uses_chart(reports)
    for number, (metric, title, note, factor) in enumerate([*PHASE_PLOTS, *_own_plots(phases)]):
        series = {name: _points(steps, metric, factor) for name, steps in reports.items()}
        if any(series.values()):
            svg = figures.phases_figure(series, f"phase{number}", title)
            charts.append(Chart(title, note, _course(series), svg))
    return tuple(charts)


def _own_plots(phases: Mapping[str, Path]) -> list[Plot]:
    """Read the plots that the recipes of phases ask for, each once."""
    plots: dict[Plot, None] = {}
    for folder in phases.values():
        if (path := folder / PLOTS_FILE).is_file():
            plots |= dict.fromkeys(_PLOTS.validate_json(path.read_bytes()))
    return list(plots)


def _uses_chart(reports: Mapping[str, Sequence[StepReport]]) -> list[Chart]:
    """What the generated tokens were used for; no chart if no phase reported it."""
    layers, legend = [], []
    every = [step.metrics for steps in reports.values() for step in steps]
    for use, label, colour in TOKEN_USES:
        metric = f"tokens/{use}_share"
        series = {phase: _points(steps, metric, 100.0) for phase, steps in reports.items()}
        # By tokens and not by steps, as the gate counts them: one number on one page.
        pairs = [(one.get(GENERATED, 1.0), one[metric]) for one in every if metric in one]
        total = sum(tokens for tokens, _ in pairs)
        share = sum(tokens * value for tokens, value in pairs) / total if total else 0.0
        if share:
            layers.append((colour, series))
            legend.append((colour, f"{label} {share:.1%}"))
    if not layers:
        return []
    svg = figures.uses_figure(layers, "uses")
    return [Chart("Use of tokens", "% of those that were generated", "", svg, tuple(legend))]


def tuning_charts(tunings: Mapping[str, Path]) -> tuple[Chart, ...]:
    """Draw loss and entropy of every fine-tuning."""
    charts = []
    for number, (name, folder) in enumerate(tunings.items()):
        tuning = read_tuning(folder)
        selection = next((epoch for epoch in tuning.epochs if epoch.chosen), None)
        low, high = tuning.entropy_window_nats
        charts.append(
            Chart(
                f"{name}: loss",
                f"nats per response token, {wording.count(tuning.demonstrations)} demonstrations",
                f"epoch {selection.epoch}: {selection.val_loss:.3f}" if selection else "",
                figures.losses_figure(tuning, f"loss{number}"),
            )
        )
        charts.append(
            Chart(
                f"{name}: entropy",
                f"nats per sampled token; the window is {low:.2f} to {high:.2f}",
                f"epoch {selection.epoch}: {selection.entropy:.3f}" if selection else "",
                figures.entropy_figure(tuning, f"entropy{number}"),
            )
        )
    return tuple(charts)


def floor_lines(progression: Sequence[EvaluationReport]) -> tuple[FloorLine, ...]:
    """Set the last model beside the texts that it is not above for certain."""
    echoes = at_floor(progression[-1]) if progression else []
    return tuple(
        FloorLine(
            family=wording.suite_label(echo.suite),
            text=echo.text,
            score=wording.percent(echo.score),
            difference=wording.signed_points(echo.difference or 0.0),
            interval=f"{wording.signed_points(echo.low or 0.0)} to "
            f"{wording.signed_points(echo.high or 0.0)}",
        )
        for echo in echoes
    )


def rule_lines(reasons: Sequence[str]) -> tuple[RuleLine, ...]:
    """Split the gate's lines, 'passed: ...' or 'FAILED: ...', into outcome and rule.

    What failed stands first, for it decided.
    """
    lines = []
    for reason in reasons:
        outcome, colon, text = reason.partition(": ")
        answer = {"passed": "yes", "failed": "no"}.get(outcome.lower() if colon else "")
        lines.append(
            RuleLine(outcome.lower(), answer, text) if answer else RuleLine("", "", reason)
        )
    return tuple(sorted(lines, key=lambda line: line.kind != "no"))


def stage_lines(stages: Sequence[StageRow]) -> tuple[StageLine, ...]:
    """Format the rows of the stage table."""
    return tuple(
        StageLine(
            stage=row.stage,
            state="ran" if row.executed else "cached",
            kind="yes" if row.executed else "plain",
            time=wording.duration(row.seconds) if row.executed else "\N{EN DASH}",
            rows_in=wording.count(row.rows_in),
            rows_out=wording.count(row.rows_out),
            why=row.why,
        )
        for row in stages
    )


def settings_groups(settings: BaseModel) -> tuple[tuple[SettingsGroup, ...], tuple[str, ...]]:
    """Lay out all settings by stage, and list those that differ from their default."""
    groups: dict[str, dict[str, object]] = {}
    changed = []
    for name, field in type(settings).model_fields.items():
        value = flat(to_jsonable_python(settings.__dict__[name]), name)
        default = field.get_default(call_default_factory=True)  # pyright: ignore[reportCallIssue]
        usual = flat(to_jsonable_python(default), name) if default is not PydanticUndefined else {}
        changed += [key for key, leaf in value.items() if key not in usual or usual[key] != leaf]
        group = settings.__dict__[name]
        if isinstance(group, RLSettings):  # what its loss has beside the settings of every loss
            value = flat(to_jsonable_python(find_loss(group.loss)), f"{name}.loss") | value
        nested = isinstance(group, BaseModel)
        groups.setdefault(name if nested else "run", {}).update(value)
    laid_out = tuple(
        SettingsGroup(
            title=title.replace("_", " "),
            note=f"{len(leaves)} value{'s' if len(leaves) > 1 else ''}",
            rows=tuple(
                SettingsLine(key.removeprefix(f"{title}."), _value(leaf))
                for key, leaf in leaves.items()
            ),
        )
        for title, leaves in groups.items()
    )
    return laid_out, tuple(changed)


def _suite_row(name: str, progression: Sequence[EvaluationReport]) -> SuiteRow:
    scores = [suite(report, name) for report in progression]
    problems = max((score.problems for score in scores if score is not None), default=0)
    accuracies = [None if score is None else score.accuracy for score in scores]
    accuracies += [one.accuracy.get(name) for one in progression[-1].baselines]
    return SuiteRow(
        label="all" if name == "all" else wording.suite_label(name),
        problems=wording.count(problems),
        cells=tuple(
            AccuracyCell("\N{EN DASH}", "none")
            if accuracy is None
            else AccuracyCell(
                wording.percent(accuracy), f"rgba(63,127,181,{0.03 + 0.42 * accuracy:.3f})"
            )
            for accuracy in accuracies
        ),
    )


def _length_row(name: str, progression: Sequence[EvaluationReport]) -> SuiteRow:
    scores = [suite(report, name) for report in progression]
    lengths = [None if score is None else score.mean_tokens for score in scores]
    longest = max((one for one in lengths if one is not None), default=0.0) or 1.0
    return SuiteRow(
        label="all" if name == "all" else wording.suite_label(name),
        problems=wording.count(max((one.problems for one in scores if one is not None), default=0)),
        cells=tuple(
            AccuracyCell("\N{EN DASH}", "none")
            if length is None
            else AccuracyCell(
                f"{length:,.1f}", f"rgba(217,130,43,{0.03 + 0.32 * length / longest:.3f})"
            )
            for length in lengths
        ),
    )


def _points(steps: Sequence[StepReport], metric: str, factor: float) -> list[tuple[int, float]]:
    return [
        (report.step, factor * report.metrics[metric])
        for report in steps
        if metric in report.metrics
    ]


def _course(series: figures.Series) -> str:
    """Format the smoothed first and last value of a metric over all phases."""
    filled = [points for points in series.values() if points]
    width = max(1, len(filled[0]) // 8)
    first = [value for _, value in filled[0][:width]]
    width = max(1, len(filled[-1]) // 8)
    last = [value for _, value in filled[-1][-width:]]
    return f"{_short(sum(first) / len(first))} \N{RIGHTWARDS ARROW} {_short(sum(last) / len(last))}"


def _short(number: float) -> str:
    if abs(number) >= 1000:
        return wording.count(round(number))
    mantissa, exponent, power = f"{number:#.3g}".partition("e")
    text = f"{mantissa}e{int(power)}" if exponent else mantissa
    return text.replace("-", wording.MINUS)


def _value(leaf: object) -> str:
    return leaf if isinstance(leaf, str) and leaf else str(to_jsonable_python(leaf)) or "(empty)"
