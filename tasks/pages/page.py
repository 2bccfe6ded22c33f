"""Write the report of a run: one HTML file with inline plots and no external resources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from data_schemas.reports import ABOUT_BASELINES, ABOUT_MERGED, Comparison, EvaluationReport
from tasks.algorithms.floors import at_floor, overall_gain, overall_score
from tasks.pages import figures, wording
from tasks.pages.before_after import BeforeAfter
from tasks.pages.curation_section import FunnelLine, funnel_lines, funnel_note, read_curation
from tasks.pages.inputs import RunInputs, suite
from tasks.pages.navigation import with_navigation
from tasks.pages.precisions import PrecisionTable, precision_tables
from tasks.pages.sections import (
    Chart,
    FloorLine,
    RuleLine,
    SettingsGroup,
    StageLine,
    SuiteTable,
    floor_lines,
    length_table,
    phase_charts,
    progression_charts,
    rule_lines,
    settings_groups,
    stage_lines,
    suite_table,
    tuning_charts,
)
from tasks.pages.step_slices import PhaseSlices, phase_slices
from tasks.pages.style import STYLE
from tasks.pages.template import PAGE
from tasks.pages.tuning_samples import TuningSamples, tuning_samples
from tasks.platform.page_style import fill
from tasks.store.files import write_bytes

PAGE_FILE = "report.html"
NO_LINKS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the header."""

    label: str
    value: str
    note: str


@dataclass(frozen=True, slots=True)
class Pill:
    """The verdict of the header; `kind` is its colour."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class PhaseKey:
    """Which colour is which phase."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Page:
    """Everything the template prints; empty parts are omitted."""

    title: str
    workflow: str
    execution: str
    started: str
    verdict: Pill
    headline: str
    tiles: tuple[Tile, ...]
    progression: tuple[Chart, ...]
    progression_note: str
    floors: tuple[FloorLine, ...]
    suites: SuiteTable | None
    suites_note: str
    lengths: SuiteTable | None
    precisions: tuple[PrecisionTable, ...]
    answers: tuple[BeforeAfter, ...]
    rules: tuple[RuleLine, ...]
    rules_note: str
    phases: tuple[Chart, ...]
    phases_key: tuple[PhaseKey, ...]
    phases_note: str
    slices: tuple[PhaseSlices, ...]
    tunings: tuple[Chart, ...]
    samples: tuple[TuningSamples, ...]
    funnel: tuple[FunnelLine, ...]
    funnel_note: str
    stages: tuple[StageLine, ...]
    stages_note: str
    settings: tuple[SettingsGroup, ...]
    settings_changed: tuple[str, ...]
    places: tuple[tuple[str, str], ...]
    footer: str


def write_report(inputs: RunInputs, out: Path, links: Mapping[str, str] = NO_LINKS) -> Path:
    """Write `out/report.html` and return its path.

    Args:
        inputs: of the run.
        out: folder.
        links: to other pages, by what they are.

    Raises:
        DataError: an artifact folder lacks a file or holds something else; names file and line.
    """
    html = fill(
        PAGE,
        page=_page(inputs),
        style=STYLE,
        colours={
            "neutral": figures.NEUTRAL,
            "tuned": figures.TUNED,
            "window": figures.WINDOW,
        },
    )
    path = out / PAGE_FILE
    write_bytes(path, with_navigation(html, links).encode())
    return path


def headline(progression: Sequence[EvaluationReport], gains: Sequence[Comparison]) -> str:
    """Summarise the result, and say what the stage before solved if it was more."""
    if not progression or suite(progression[-1], "all") is None:
        return "No model was evaluated in this run."
    name, floors = progression[-1].model, at_floor(progression[-1])
    score = overall_score(progression[-1])
    if score is None:
        return f"{name} cannot be told from texts that do no task in any family."
    overall = overall_gain(progression[-1], gains)
    left_out = ", ".join(wording.suite_label(echo.suite) for echo in floors)
    without = f" without {left_out}" if left_out else ""
    solved = f"{name} solves {wording.percent(score.accuracy)} of the held-out problems{without}"
    if overall is None:
        return f"{solved}."
    points = wording.signed_points(overall.difference)
    parent = wording.parent_name(overall.parent)
    lost = "" if floors else _lost(progression, overall.parent)
    if not wording.is_clear(overall):
        return f"{solved}; against {parent} nothing is certain ({points} points).{lost}"
    amount = points.lstrip(f"+{wording.MINUS}")
    direction = "more" if overall.difference > 0 else "fewer"
    return f"{solved}, {amount} points {direction} than {parent}.{lost}"


def _lost(progression: Sequence[EvaluationReport], parent: str) -> str:
    """Say that the model before the last one solved more; '' if it did not, or is the parent."""
    if len(progression) < 2:
        return ""
    before, last = (suite(one, "all") for one in progression[-2:])
    name = progression[-2].model
    if name == parent or before is None or last is None or before.accuracy <= last.accuracy:
        return ""
    amount = wording.signed_points(before.accuracy - last.accuracy).lstrip("+")
    return f" {name} solved {amount} points more; whether that is chance was not tested."


def _page(inputs: RunInputs) -> Page:
    settings, changed = settings_groups(inputs.settings)
    curation = read_curation(inputs.curated) if inputs.curated else None
    return Page(
        title=f"{inputs.workflow} {inputs.execution.id}",
        workflow=inputs.workflow,
        execution=inputs.execution.id,
        started=wording.date(inputs.execution.started),
        verdict=verdict(inputs),
        headline=headline(inputs.progression, inputs.gains),
        tiles=_tiles(inputs),
        progression=progression_charts(inputs.progression, inputs.gains),
        progression_note="All models answer the same held-out problems. Intervals are bootstrapped "
        "over problems, differences over pairs of answers to the same problem."
        + f" {ABOUT_MERGED}" * any(one.model == wording.MERGED for one in inputs.progression)
        + "".join(
            f" {one.model} has the weights of {one.same_as}: its answers are taken over."
            for one in inputs.progression
            if one.same_as
        ),
        floors=floor_lines(inputs.progression),
        suites=suite_table(inputs.progression),
        suites_note=f" {ABOUT_BASELINES}"
        if inputs.progression and inputs.progression[-1].baselines
        else "",
        lengths=length_table(inputs.progression),
        precisions=precision_tables(inputs.precisions),
        answers=inputs.answers,
        rules=rule_lines(inputs.gate.reasons) if inputs.gate else (),
        rules_note=_rules_note(inputs),
        phases=phase_charts(inputs.phases),
        phases_key=tuple(
            PhaseKey(name, figures.PHASES[place % len(figures.PHASES)])
            for place, name in enumerate(inputs.phases)
        ),
        phases_note="One value per step, phases one after the other; thin lines are the values, "
        "thick ones their trailing mean. Beside each title: from the first steps to the last. "
        "Prompts that are expected to be solved always or never are skipped, so that what is "
        "solved is of the others, and no measure of progress.",
        slices=phase_slices(inputs.phases),
        tunings=tuning_charts(inputs.tunings),
        samples=tuning_samples(inputs.tunings),
        funnel=funnel_lines(curation) if curation else (),
        funnel_note=funnel_note(curation) if curation else "",
        stages=stage_lines(inputs.stages),
        stages_note=_time_note(inputs),
        settings=settings,
        settings_changed=changed,
        places=tuple(inputs.places.items()),
        footer="This page is one file: it loads nothing and can be kept or mailed as it is.",
    )


def verdict(inputs: RunInputs) -> Pill:
    """Say what the gate decided; a release whose RL may have gained nothing is to be looked at."""
    if inputs.gate is None:
        return Pill("No gate in this run", "plain")
    if not inputs.gate.released:
        return Pill("Not released", "no")
    if inputs.gate.awaits:
        return Pill("Passed; waits for approval", "unclear")
    overall = overall_gain(inputs.progression[-1], inputs.gains) if inputs.progression else None
    if overall is not None and overall.parent == wording.MERGED and overall.low <= 0.0:
        return Pill("Released. That RL gained is not shown", "unclear")
    return Pill("Released", "yes")


def _rules_note(inputs: RunInputs) -> str:
    if inputs.gate is None:
        return ""
    decided = "let the candidate pass" if inputs.gate.released else "refused the candidate"
    return f"The gate {decided}. Every rule, and how it turned out:"


def _tiles(inputs: RunInputs) -> tuple[Tile, ...]:
    tiles = []
    score = overall_score(inputs.progression[-1]) if inputs.progression else None
    if score is not None:
        tiles.append(
            Tile(
                "Held-out accuracy",
                wording.percent(score.accuracy),
                f"interval {wording.interval(score)}",
            )
        )
    overall = overall_gain(inputs.progression[-1], inputs.gains) if inputs.progression else None
    if overall is not None:
        low, high = wording.signed_points(overall.low), wording.signed_points(overall.high)
        tiles.append(
            Tile(
                f"Points over {wording.parent_name(overall.parent)}",
                wording.signed_points(overall.difference),
                f"interval {low} to {high}",
            )
        )
    if score is not None:
        tiles.append(
            Tile(
                "Held-out problems",
                wording.count(score.problems),
                f"{score.samples} responses each, "
                f"{wording.count(score.abstained)} without a verdict",
            )
        )
    ran = [row for row in inputs.stages if row.executed]
    if inputs.stages:
        tiles.append(
            Tile(
                "Time in stages",
                wording.duration(sum(row.seconds for row in ran)),
                f"{len(inputs.stages) - len(ran)} of {len(inputs.stages)} from the cache",
            )
        )
    if cost := wording.gpu_cost(sum(row.gpu_seconds for row in inputs.stages)):
        now = wording.gpu_cost(sum(row.gpu_seconds for row in ran)) or "none"
        hours, _, money = cost.partition(f"{wording.NBSP}GPU")
        note = f"{money.partition(', ')[2]} for all stages behind it; of this execution {now}"
        tiles.append(Tile("GPU hours", hours, note.removeprefix(" ")))
    return tuple(tiles)


def _time_note(inputs: RunInputs) -> str:
    cached = [row for row in inputs.stages if not row.executed]
    if not cached:
        return "Every stage of this execution ran."
    saved = wording.duration(sum(row.seconds for row in cached))
    return f"{len(cached)} of {len(inputs.stages)} stages came from the cache, which saved {saved}."
