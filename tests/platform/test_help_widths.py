"""The help of every command fits a terminal of 80 columns, and is broken between words only."""

import contextlib
import importlib
import io

import pytest

from data_schemas.texts import command_lines, fitted
from tasks.platform.console import (
    LAB_MODULES,
    MODULES,
    command_places,
    help_lines,
    laboratory,
    overview,
    read_command,
)

COLUMNS = 80


def module_help(place: str) -> list[str]:
    module, _, function = place.partition(":")
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.suppress(SystemExit):
        getattr(importlib.import_module(module), function)(["--help"])
    return stream.getvalue().splitlines()


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def test_the_help_of_every_workflow_and_the_lists_fit_the_screen():
    places = command_places()
    texts = {name: help_lines(read_command(name, places)) for name in places}
    texts |= {"": overview(), "lab": laboratory()}

    assert {} == {
        name: long
        for name, lines in texts.items()
        if (long := [line for line in lines if len(line) > COLUMNS])
    }


HEAVY = pytest.param("settings", marks=pytest.mark.slow)
"""Loads the models of all settings."""


@pytest.mark.parametrize("name", [HEAVY, *sorted({*MODULES, *LAB_MODULES} - {"settings"})])
def test_the_help_of_every_other_command_fits_the_screen(name: str):
    lines = module_help((MODULES | LAB_MODULES)[name][0])

    assert lines
    assert [] == [line for line in lines if len(line) > COLUMNS]


def test_prose_is_filled_and_commands_go_on_in_the_next_line():
    prose, options = "One two three\nfour and five.", "  eachprompt run --a 1 --b 22222"

    assert [
        "One two three four",
        "and five.",
        "",
        "  eachprompt run \\",
        "      --a 1 \\",
        "      --b 22222",
        "",
        "eachprompt x --c \\",
        "    --d",
    ] == fitted(f"{prose}\n\n{options}\n\neachprompt x --c --d", 18)
    assert ["a " + "b" * 30] == command_lines("a " + "b" * 30, 20)
