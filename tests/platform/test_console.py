"""The command `eachprompt`: fast help from the source, and the same workflows as `pyflyte run`."""

import inspect
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tasks.platform import console
from tasks.platform.console import (
    COMMANDS,
    LAB_MODULES,
    MODULES,
    command_places,
    help_lines,
    main,
    overview,
    read_command,
)
from tasks.platform.settings_option import is_settings
from tests.processes import run_process
from tests.timing import processes_s, timed

ROOT = Path(__file__).parents[2]
HEAVY = ("flytekit", "torch", "transformers", "mlflow", "pandas", "pyarrow", "numpy")
MAX_CPU_S = 1.0
MAX_MIB = 150
PLACES = command_places()


def refusal(capsys, *words: str) -> str:
    """Type what must be refused and return the one line that says why."""
    code = main(words)

    (line,) = capsys.readouterr().err.splitlines()
    assert 2 == code
    return line


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "run", *MODULES])
def test_help_has_an_example_loads_no_library_and_takes_less_than_a_second(name):
    words = [name, "--help"] if name else ["--help"]
    code = (
        "import atexit, sys; from tasks.platform.console import main; "
        "atexit.register(lambda: sys.stderr.write("
        f"repr([name for name in {HEAVY!r} if name in sys.modules]))); "
        f"sys.exit(main({words!r}))"
    )

    cpu_s, done = timed(
        lambda: run_process(["/bin/sh", "-c", 'exec "$0" -c "$1"', sys.executable, code], cwd=ROOT),
        MAX_CPU_S,
        clock=processes_s,
    )

    assert "[]" == done.stderr
    about, *rest = done.stdout.split("\n\n")
    assert f"eachprompt {name}" in "".join(rest)
    assert name not in MODULES or f"eachprompt {name}" in about
    assert cpu_s < MAX_CPU_S


def test_help_of_the_command_stays_below_150_mib():
    code = (
        "import resource; from tasks.platform.console import main; main(['run', '--help']); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    # A small process starts it: what a process of pytest's size forks inherits its peak of memory.
    starter = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    )

    done = run_process([sys.executable, "-c", starter], cwd=ROOT)

    assert int(done.stdout.splitlines()[-1]) < MAX_MIB * 1024


def test_every_workflow_has_a_command_with_its_inputs_defaults_and_an_example():
    for name, (path, function) in PLACES.items():
        command = read_command(name, PLACES)
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        entry = getattr(import_module(module), function)
        parameters = inspect.signature(entry.__wrapped__).parameters

        assert [*parameters] == [option.name for option in command.options]
        for option in command.options:
            default = parameters[option.name].default
            assert (option.default is None) == (default is inspect.Parameter.empty)
            assert option.text, (name, option.name)
            if is_settings(console.record_class(command, option.kind)):
                shown = console.preset(command, option)
                assert shown is None or shown == default
        assert command.summary
        assert command.examples, name
        for example in command.examples:
            assert f"eachprompt {name}" in example
        text = re.sub(r" \\\n +", " ", "\n".join(help_lines(command)))  # as a shell reads it
        assert all(example in text for example in command.examples)


def test_the_list_of_commands_names_each_of_them():
    text, laboratory = "\n".join(overview()), "\n".join(console.laboratory())

    assert COMMANDS.keys() < PLACES.keys()
    for name in [*PLACES, *MODULES, *LAB_MODULES]:
        assert name in (laboratory if name.startswith("lab ") else text)


def test_without_the_laboratory_its_commands_are_refused_and_not_listed(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(console, "LAB", tmp_path / "lab")

    assert 2 == console.main(["lab", "study"])
    assert "needs the laboratory" in capsys.readouterr().err
    assert not any("lab" in line.split() for line in overview())


def test_a_long_summary_is_broken_and_not_cut():
    lines = overview()

    assert all(len(line) <= console.columns() for line in lines)
    assert "one alone against the base" in " ".join(" ".join(lines).split())


def test_a_module_that_is_a_command_exists():
    for place, summary in [*MODULES.values(), *LAB_MODULES.values()]:
        module, _, function = place.partition(":")
        assert (
            f"def {function}(" in ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text()
        )
        assert summary.endswith(".")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["retrian"], "'retrian' is not a command; did you mean retrain?"),
        (["zzz"], "'zzz' is not a command; choose from run, curate"),
        (["run", "--setings", "{}"], "eachprompt run has no option --setings; did you mean --sett"),
        (["run", "--settings", '{"rl_one": {"stepps": 3}}'], "is not a setting; did you mean `st"),
        (["run", "--settings=nothing.yaml"], "'nothing.yaml' is neither a JSON object nor a file"),
        (["agreement"], "--file is missing; see eachprompt agreement --help"),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_what_is_typed_wrong_is_named_before_a_library_is_loaded(capsys, words, message):
    assert message in refusal(capsys, *words)


def test_a_wrong_field_in_a_file_is_named(capsys, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("rl_one:\n  learning_rate: 100\n")

    assert "--settings: rl_one.learning_rate is 100" in refusal(
        capsys, "run", "--settings", str(file)
    )


def test_a_file_that_is_no_yaml_is_named(capsys, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("rl_one: [")

    assert f"{file} is not YAML" in refusal(capsys, "run", "--settings", str(file))


def test_the_value_of_an_option_may_look_like_an_option():
    command = read_command("trace", PLACES)

    console.check_options(command, ["--row", "--not-an-option", "--show=3", "--store=s3://b/x"])


@pytest.mark.slow
def test_settings_prints_what_the_module_prints():
    done = run_process([sys.executable, "-m", "tasks.platform.console", "settings"], cwd=ROOT)

    assert "rl_one" in done.stdout


def test_settings_as_a_file_are_those_as_json(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("rl_one:\n  steps: 010\nname: 2026-01-02\n")

    written = json.loads(console.settings_text(str(file)))
    assert {"rl_one": {"steps": 10}, "name": "2026-01-02"} == written


def test_the_first_line_stands_on_the_terminal_before_a_library_is_loaded(tmp_path):
    ours, theirs = os.openpty()
    code = (
        "import sys; from tasks.platform.console import main; sys.addaudithook("
        f"lambda event, of: event == 'import' and of[0] in {HEAVY!r} and sys.exit(of[0])); "
        f"main(['run', '--store', {str(tmp_path)!r}])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=theirs
    ):
        line = os.read(ours, 200)

    assert b"eachprompt run: checks options, then loads PyTorch and Flyte\r\n" == line
