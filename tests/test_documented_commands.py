"""Every command in a page for people exists and takes the arguments it is shown with.

`make` targets are expanded by `make -n` into the commands they run; `--help` behind a command
makes it read its options and end. Commands that cost a second are run in full.
"""

import functools
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from flytekit.clis.sdk_in_container.pyflyte import main

from tasks.platform.command_line import run
from tests.documented import resolve_eachprompt
from tests.tables import for_each

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for folder in ("", ".github", "docs", "tasks", "containers", "workflows", "data_schemas")
    for path in (ROOT.glob("*.md") if not folder else (ROOT / folder).rglob("*.md"))
    # It also names commands that are gone.
    if path.name != "CHANGELOG.md"
)
COMMAND = re.compile(
    r"(?:^    |`)((?:make [a-z]|pyflyte run |eachprompt [a-z]|python -m )[^`\n]*)", re.MULTILINE
)
IN_MAKE = re.compile(r"\S*bin/(pyflyte run .*|eachprompt .*|python -m .*)")
OF_MAKE = ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS")
CHEAP = ("make help", "eachprompt settings", pytest.param("make budget", marks=pytest.mark.slow))


def commands() -> list[str]:
    found = {match[1] for page in PAGES for match in COMMAND.finditer(page.read_text())}
    return sorted({re.sub(r"\s#\s.*", "", command).strip() for command in found})


def make_calls() -> list[str]:
    """The make commands of the pages: one for all that have the same variables."""
    goals: dict[tuple[str, ...], list[str]] = {}
    for command in commands():
        if command.startswith("make "):
            words = shlex.split(command, comments=True)[1:]
            variables = tuple(word for word in words if "=" in word)
            goals.setdefault(variables, []).extend(word for word in words if "=" not in word)
    return [shlex.join(["make", *names, *variables]) for variables, names in goals.items()]


def made(command: str) -> list[str]:
    """The commands that make targets run."""
    done = subprocess.run(
        ["make", "-n", *shlex.split(command, comments=True)[1:]],
        cwd=ROOT,
        # Without those of a make that runs the tests: make test ARGS=-x
        env={
            name: value
            for name, value in (os.environ | {"PYTHON": sys.executable}).items()
            if name not in OF_MAKE
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    lines = done.stdout.replace("\\\n", " ").splitlines()
    return [found[1] for line in lines if (found := IN_MAKE.search(line))]


@pytest.mark.parametrize("target", [["run", "ENGINES=real"], ["public"], ["real"]], ids=" ".join)
def test_settings_given_twice_are_refused_before_any_work(target):
    command = ["make", "-n", *target, "ARGS=--settings {}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert "passes settings of its own" in done.stderr


def test_evidence_of_what_is_no_study_is_refused_with_those_that_are():
    command = ["make", "-n", "evidence", "NAME=nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert all(f" {name}" in done.stderr for name in ("ladder", "tokens", "real", "trl", "claims"))


@pytest.mark.slow
def test_a_test_of_a_store_without_its_address_is_refused_with_what_to_write():
    command = ["make", "-n", "test-s3", "ENDPOINT="]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert "make test-s3 ENDPOINT=https://s3.example" in done.stderr
    (line,) = made("make test-s3 ENDPOINT=http://127.0.0.1:9000")
    # The empty ARGS leave a blank at the end.
    assert line.rstrip().endswith("tests/store/test_interface.py tests/store/test_lease.py -k s3")


def test_all_tests_are_the_daily_ones_and_the_slow_ones():
    marks = {line.split("'")[1] for line in made("make test-all") if "-m '" in line}

    (mark,) = marks
    assert "slow" not in mark
    assert "tools" not in mark
    assert {"gpu", "cluster", "engines", "stack"} < set(mark.replace("not ", "").split(" and "))


def test_evidence_beside_trl_is_both_benches_and_of_the_claims_only_their_page():
    rendered = "python -m tasks.lab.study.documents"

    assert [
        "python -m tests.bench.rl_step 8 1 --out tests/bench/rl_step.json",
        "python -m tests.bench.resume.command --points 50",
        rendered,
    ] == [line.strip() for line in made("make evidence NAME=trl")]
    assert [rendered] == [line.strip() for line in made("make evidence NAME=claims")]
    (study,) = made("make evidence NAME=tokens SEEDS=2")
    assert "--of workflows/lab/studies/tokens.yaml" in study


@functools.cache
def resolve(command: str, *, in_full: bool = False) -> None:
    """Have a command read its options, or run it."""
    words = shlex.split(command, comments=True)
    rest = [] if in_full else ["--help"]
    if words[0] == "pyflyte":
        done = CliRunner().invoke(main, [*words[1:], *rest])
        assert 0 == done.exit_code, done.output
    elif words[0] == "eachprompt":
        resolve_eachprompt(command, in_full=in_full)
    elif words[2] not in ("pytest", "pip", "venv"):
        is_package = (ROOT / words[2].replace(".", "/")).is_dir()
        module = f"{words[2]}.__main__" if is_package else words[2]
        with pytest.raises(SystemExit) as ended:
            run(import_module(module).main, [*words[3:], *rest])
        assert ended.value.code in (0, None)


def test_the_pages_have_commands():
    assert {"make run", "make test"} <= set(commands())


@for_each("command", [one for one in commands() if not one.startswith("make ")])
def test_a_documented_command_resolves_with_its_arguments(command):
    resolve(command)


@for_each("call", make_calls())
def test_what_documented_targets_run_resolves_with_its_arguments(call):
    for line in made(call):
        resolve(line)


@pytest.mark.parametrize("command", CHEAP)
def test_a_cheap_command_runs(command):
    for line in made(command) if command.startswith("make ") else [command]:
        resolve(line, in_full=True)
