"""The screen at the end of a run."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.text import Text

from data_schemas.reports import GateDecision
from tasks.pages.inputs import RunInputs
from tasks.pages.stage_rows import StageRow
from tasks.pages.summary import show, summary


def _screen(inputs, width=130):
    stream = io.StringIO()
    show(inputs, Console(file=stream, width=width))
    return stream.getvalue().replace("\N{NO-BREAK SPACE}", " ")


def _line(screen, start):
    """Words of the first line that begins with `start`."""
    return next(line.split() for line in screen.splitlines() if line.strip().startswith(start))


def test_the_stage_table_says_what_ran_what_was_cached_and_why(run):
    screen = _screen(run)

    assert "Stages: 3 ran in 2 min 37 s, 1 from the cache" in screen
    assert ["curate", "cached", "\N{EN DASH}", "12,345", "9,876", "same", "code,"] == _line(
        screen, "curate"
    )[:7]
    assert ["rl/one", "ran", "1", "min", "15", "s", "1,024", "320", "settings"] == _line(
        screen, "rl/one"
    )[:9]


def test_progression_gains_and_verdict_are_there(run):
    screen = _screen(run)

    assert {"11.2", "%", "9.8", "to", "12.6"} <= set(_line(screen, "base"))
    assert "Points gained over the merged model" in " ".join(screen.split())
    assert "+10.1 to +18.3" in screen
    assert "\N{MINUS SIGN}6.0" in screen
    assert "Not released. 1 of 2 rules of the gate passed. Against it:\n  open text lost" in screen
    assert ["MLflow", "sqlite:////run/mlflow.db"] == _line(screen, "MLflow")


def test_a_release_whose_rl_may_have_gained_nothing_is_yellow(run):
    gate = GateDecision(released=True, reasons=("passed: all",), comparisons=())
    unclear = run.gains[0].model_copy(update={"difference": 0.01, "low": -0.01, "high": 0.03})
    for gains, colour, text in (
        (run.gains, "green", "Released. 1 of 1"),
        ((unclear, *run.gains[1:]), "yellow", "Released. That RL gained is not shown. 1 of 1"),
    ):
        lines = summary(replace(run, gate=gate, gains=gains), 100).renderables

        (line,) = (one for one in lines if isinstance(one, Text) and text in one.plain)
        assert colour in str(line.spans[0].style)


def test_bars_are_as_long_as_the_accuracies_of_a_hundred_percent(run):
    # 20 cells for all problems: 20 * 0.112 = 2.2, 4.9, 5.8.
    screen = _screen(run)

    assert [2, 5, 6] == [
        len(_line(screen, name)[1]) for name in ("base", "sft/reasoning", "merged")
    ]


def test_a_reason_is_not_repeated_line_after_line(run):
    cached = "same code, settings and inputs as execution a on 2026-11-21"
    rows = tuple(StageRow(name, False, 1.0, 1, 1, cached) for name in ("one", "two", "three"))

    screen = _screen(
        RunInputs(workflow="x", execution=run.execution, settings=run.settings, stages=rows)
    )

    assert 1 == screen.count(cached)
    assert "\N{DITTO MARK}" == _line(screen, "three")[-1]


@pytest.mark.parametrize("width", [80, 130])
def test_no_line_is_wider_than_the_screen_and_all_fit_on_it(run, width):
    lines = _screen(run, width).splitlines()

    assert max(map(len, lines)) <= width
    assert len(lines) <= 45


def test_a_command_is_on_one_line_however_narrow_the_screen_is(run):
    command = f"eachprompt audit --model models:/x/1 --store {'/a' * 60}"

    screen = _screen(replace(run, places={"audit": command}), 80)

    assert f"audit  {command}" in screen.splitlines()


def test_why_a_stage_ran_can_be_read_on_a_narrow_screen(run):
    screen = _screen(run, 80)

    assert "rows in" not in screen
    assert "same code, settings and inputs" in screen


def test_a_run_without_models_shows_its_stages_only(run):
    screen = _screen(
        RunInputs(
            workflow="x",
            execution=run.execution,
            settings=run.settings,
            stages=run.stages,
        )
    )

    assert "Held-out accuracy" not in screen
    assert "eleased" not in screen
