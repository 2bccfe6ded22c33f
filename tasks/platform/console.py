"""The command `eachprompt`: every workflow by name, with help that imports no library.

    eachprompt run --settings my.yaml

A command and its options are read from the source of its workflow, without importing it: help is
there at once, and options are written in one place. A command runs as `pyflyte run` runs it, with
the same options.
"""

import ast
import difflib
import importlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeGuard, cast

from pydantic import TypeAdapter, ValidationError

from data_schemas.located import located
from data_schemas.shipped import shipped
from data_schemas.texts import command_lines, fitted, wrapped
from data_schemas.yaml_text import load_yaml
from tasks.errors import SettingsError
from tasks.platform.command_line import fit, run
from tasks.platform.environment import WRONG_INPUT
from tasks.platform.settings_option import field_lines, is_settings, read_settings

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / "workflows"
COMMANDS = {
    "run": "post_training.post_training",
    "curate": "curate.curate",
    "retrain": "retrain.retrain",
    "audit": "audit.audit",
    "trace": "lineage.trace",
    "forget": "lineage.forget",
    "diff-models": "lineage.compare",
    "compare": "compare.compare",
    "evaluate": "evaluate.evaluate",
}
"""Commands whose names differ from their workflow's, or that the list shows first."""
MODULES = {
    "init": (
        "tasks.curation.commands:init",
        "Guess the mappings of your tables, show prompts with their answers, write the YAML.",
    ),
    "chat": (
        "tasks.evaluation.chat_command:main",
        "Talk to a model, or serve it to programs (--serve).",
    ),
    "compare-runs": (
        "tasks.pages.commands:compare_runs",
        "Compare two executions on one page: settings, models, families, tokens, answers.",
    ),
    "settings": (
        "tasks.settings.commands:settings",
        "Print every setting with its value, limits and source.",
    ),
    "examples": (
        "tasks.platform.examples:main",
        "List settings, presets and studies that come with the program; copy the examples.",
    ),
    "data": (
        "tasks.curation.commands:data",
        "Print every adapter and mapping that reads raw rows.",
    ),
    "verify": (
        "tasks.curation.commands:verify",
        "Verify a table of golds and answers, beside math-verify.",
    ),
    "history": (
        "tasks.provenance.release.commands:history",
        "Print promotions and refused candidates of a model.",
    ),
    "approve": ("tasks.retraining.approve:approve", "Say yes to files that a night held."),
    "reject": (
        "tasks.retraining.approve:reject",
        "Say no to files that a night held, for good.",
    ),
    "publish": (
        "tasks.provenance.release.commands:publish",
        "Copy a release into a folder as the Hugging Face hub lays models out.",
    ),
    "gc": (
        "tasks.provenance.audit.collection:main",
        "Delete models that nothing needs any more; the audit accepts the notes they leave.",
    ),
    "rollback": (
        "tasks.provenance.release.commands:rollback",
        "Release the previous version again.",
    ),
}
"""Commands that are no workflow: functions of the arguments, with help of their own."""
LAB = WORKFLOWS / "lab"
"""Studies, recipes and measurements: commands `eachprompt lab NAME`; the rest works without."""
LAB_MODULES = {
    "lab dumps": (
        "tasks.lab.dumps.command:main",
        "Print signal, mismatch and doubtful verdicts of rollouts that another trainer wrote.",
    ),
}
"""Commands of the laboratory that are no workflow."""
EARLY = "tasks.settings.early"
"""Module that looks at places before a library is loaded; it lies above this one."""
NUMBERS = {"int": int, "float": float}
"""Kinds of options by name; the others are named in data_schemas."""
ORDER = ("run", "init", "curate", "retrain", "audit", "trace", "forget", "diff-models")
"""Commands as they are met, from the first run on; the others follow."""
ENVIRONMENT = {
    # One thread: results do not depend on the number of cores, and a busy machine is no slower.
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "FLYTE_SDK_LOGGING_LEVEL": "40",
}
"""What the Makefile exports, too, unless the variable is set."""
_ENTRY = re.compile(r"^@entry_point\ndef (?P<name>\w+)\(", re.MULTILINE)
"""`@entry_point`, and on the next line `def curate(`."""
_SETTINGS = "--settings="
_EXAMPLE = re.compile(r"pyflyte run workflows/\S+\.py (?P<name>\w+)")
"""`pyflyte run workflows/curate.py curate`, as the docstring of a workflow's file writes it."""


@dataclass(frozen=True, slots=True)
class Option:
    """One input of a workflow."""

    name: str
    kind: str
    """Its annotation, as it stands in the source."""
    default: str | None
    """As it stands in the source; None if the option is required."""
    text: str


@dataclass(frozen=True, slots=True)
class WorkflowCommand:
    """One workflow, as its source describes it."""

    name: str
    file: Path
    function: str
    summary: str
    options: tuple[Option, ...]
    examples: tuple[str, ...]
    records: dict[str, str]
    """Modules of data_schemas by the name that the file imports from them."""


def main(arguments: Sequence[str]) -> int:
    """Run a command, or print help.

    Args:
        arguments: of the command line, without the program.

    Returns:
        The exit code of help and of refusals; a command itself ends the process.
    """
    match list(arguments):
        case [] | ["-h" | "--help" | "help"]:
            print_lines(overview())
        case ["--version"]:
            print_lines([f"eachprompt {own_version()}"])
        case ["help", *rest]:
            return main([*rest, "--help"])
        case ["lab"] | ["lab", "-h" | "--help"]:
            print_lines(laboratory())
        case ["lab", name, *rest] if f"lab {name}" in LAB_MODULES and LAB.is_dir():
            return run_module(f"lab {name}", rest)
        case ["lab", name, *rest]:
            return run_command(f"lab {name.replace('_', '-')}", rest)
        case [name, *rest] if name in MODULES:
            return run_module(name, rest)
        case [name, *rest]:
            return run_command(name.replace("_", "-"), rest)
    return 0


def run_module(name: str, arguments: Sequence[str]) -> int:
    """Start a command that is no workflow; it ends the process."""
    try:
        if name in ("chat", "publish") and not {"-h", "--help"} & {*arguments}:
            importlib.import_module(EARLY).check_model(arguments)
    except SettingsError as error:
        return refuse(error)
    module, _, function = (MODULES | LAB_MODULES)[name][0].partition(":")
    run(getattr(importlib.import_module(module), function), arguments)
    return 0


def refuse(error: SettingsError) -> int:
    """Say what was typed wrong, in one line, and return the exit code."""
    sys.stderr.write(fit(f"SettingsError: {' '.join(str(error).split())}\n", sys.stderr))
    return WRONG_INPUT


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Start a workflow by the name of its command, or print its help."""
    places = command_places()
    try:
        if name.startswith("lab ") and not LAB.is_dir():
            raise SettingsError(
                f"{name!r} needs the laboratory, and {LAB} is missing; install the program again"
            )
        if name not in places:
            commands = [*places, *MODULES, *(LAB_MODULES if LAB.is_dir() else ())]
            raise SettingsError(f"{name!r} is not a command{likely(name, commands)}")
        command = read_command(name, places)
        if {"-h", "--help"} & {*arguments}:
            print_lines(help_lines(command))
            return 0
        arguments = [with_place(word) for word in arguments]
        if sys.stderr.isatty():  # seconds pass before a stage has anything to say
            sys.stderr.write(f"eachprompt {name}: checks options, then loads PyTorch and Flyte\n")
        check_options(command, arguments)
    except SettingsError as error:
        return refuse(error)
    start_workflow(command, arguments)
    return 0


def with_place(word: str) -> str:
    """Replace the name of a file that comes with the program by its path: `--of=study:ladder`.

    Raises:
        SettingsError: there is no such file.
    """
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    try:
        place = shipped(value)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    if place is None:
        return word
    # As it would be typed: an evidence file has it, and of a checkout no place of this machine.
    here = Path.cwd()
    return f"{option}{equals}{place.relative_to(here) if place.is_relative_to(here) else place}"


def own_version() -> str:
    """Return the installed version, or that of the checkout."""
    try:
        return version("eachprompt")
    except PackageNotFoundError:
        project = (ROOT / "pyproject.toml").read_text()
        return project.partition('\nversion = "')[2].partition('"')[0]


def command_places() -> dict[str, tuple[Path, str]]:
    """Find every workflow: file and function by the command's name, the main ones first."""
    places: dict[str, tuple[Path, str]] = {}
    names = {place: name for name, place in COMMANDS.items()}
    for path in sorted(WORKFLOWS.rglob("*.py")):
        for match in _ENTRY.finditer(path.read_text()):
            function = match["name"]
            name = names.get(f"{path.stem}.{function}", function.replace("_", "-"))
            places[f"lab {name}" if path.is_relative_to(LAB) else name] = path, function
    return {name: places[name] for name in [*COMMANDS, *sorted(places.keys() - COMMANDS.keys())]}


def read_command(name: str, places: dict[str, tuple[Path, str]]) -> WorkflowCommand:
    """Read the docstrings and the signature of a workflow without importing it."""
    path, function = places[name]
    tree = ast.parse(path.read_text())
    (node,) = (
        item for item in tree.body if isinstance(item, ast.FunctionDef) and item.name == function
    )
    text = ast.get_docstring(node) or ""
    descriptions = argument_texts(text)
    defaults = [None] * (len(node.args.args) - len(node.args.defaults)) + [
        ast.unparse(default) for default in node.args.defaults
    ]
    options = tuple(
        Option(
            argument.arg,
            ast.unparse(argument.annotation) if argument.annotation else "str",
            default,
            descriptions.get(argument.arg, ""),
        )
        for argument, default in zip(node.args.args, defaults, strict=True)
    )
    records = {
        alias.asname or alias.name: item.module
        for item in tree.body
        if isinstance(item, ast.ImportFrom) and (item.module or "").startswith("data_schemas")
        for alias in item.names
        if item.module
    }
    examples = tuple(examples_in(ast.get_docstring(tree) or "", name, function))
    return WorkflowCommand(
        name, path, function, text.partition("\n\nArgs:")[0], options, examples, records
    )


def argument_texts(docstring: str) -> dict[str, str]:
    """Read the section `Args:` of a docstring: text by argument."""
    section = docstring.partition("\n\nArgs:\n")[2].partition("\n\n")[0]
    texts: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        head = re.match(r" {4}(\w+): (.*)", line)
        if head:
            name = head[1]
            texts[name] = head[2]
        elif name:
            texts[name] += " " + line.strip()
    return texts


def examples_in(docstring: str, name: str, function: str) -> Iterator[str]:
    """Rewrite the examples of a workflow's file as calls of this command."""
    lines = docstring.replace("\\\n", " ").splitlines()
    for line in lines:
        match = _EXAMPLE.search(line)
        if match and match["name"] == function:
            yield re.sub(r"\s+", " ", _EXAMPLE.sub(f"eachprompt {name}", line)).strip()


def overview() -> list[str]:
    """Return the lines of `eachprompt --help`."""
    places = command_places()
    width = max(map(len, [*places, *MODULES])) + 2
    about = {name: read_command(name, places).summary.partition("\n")[0] for name in COMMANDS} | {
        name: text for name, (_, text) in MODULES.items()
    }
    first = [name for name in ORDER if name in about]
    others = ", ".join(
        name for name in places if name not in COMMANDS and not name.startswith("lab ")
    )
    return [
        "Turn a base language model into a reasoning model, and prove what made it.",
        "",
        "Usage: eachprompt COMMAND [OPTIONS]",
        "",
        *(
            line
            for name in [*first, *(name for name in about if name not in first)]
            for line in beside(f"  {name:{width}}", about[name])
        ),
        "",
        "Single stages:",
        "",
        *wrapped(others, columns(), "  "),
        "",
        *(["eachprompt lab lists studies, recipes and measurements.", ""] if LAB.is_dir() else []),
        "Examples:",
        "",
        "  eachprompt run",
        "  eachprompt init products.csv",
        "  eachprompt run --settings my.yaml --store runs",
        "  eachprompt run --settings example:shop",
        "  eachprompt audit --model models:/eachprompt-tiny@released",
        "  eachprompt chat models:/eachprompt-tiny@released",
        "",
        "eachprompt COMMAND --help shows the options and examples of a command.",
    ]


def laboratory() -> list[str]:
    """Return the lines of `eachprompt lab`."""
    places = command_places()
    about = {
        name: read_command(name, places).summary.partition("\n")[0]
        for name in places
        if name.startswith("lab ")
    } | {name: text for name, (_, text) in LAB_MODULES.items()}
    width = max(map(len, about)) + 2
    return [
        "Studies, recipes of papers and measurements.",
        "",
        "Usage: eachprompt lab NAME [OPTIONS]",
        "",
        *(line for name in sorted(about) for line in beside(f"  {name:{width}}", about[name])),
        "",
        "eachprompt lab NAME --help shows the options and examples of a command.",
    ]


def help_lines(command: WorkflowCommand) -> list[str]:
    """Return the lines of a command's help: summary, options, settings, examples."""
    heads = [f"--{option.name} {placeholder(command, option)}" for option in command.options]
    width = min(max(map(len, heads), default=0), 30) + 4
    lines = [*fitted(command.summary, columns()), "", f"Usage: eachprompt {command.name} [OPTIONS]"]
    if heads:
        lines += ["", "Options:", ""]
    for head, option in zip(heads, command.options, strict=True):
        text = f"{option.text} {default_text(command, option)}".strip()
        first, *rest = wrapped(text, columns(), " " * width) or [""]
        lines += [f"  {head:{width - 2}}{first.strip()}" if len(head) < width - 2 else f"  {head}"]
        lines += rest if len(head) < width - 2 else [first, *rest]
    for option in command.options:
        model = record_class(command, option.kind)
        if is_settings(model):
            lines += [
                "",
                f"Groups and fields of --{option.name}:",
                "",
                *field_lines(model, columns()),
            ]
    return [
        *lines,
        "",
        "Examples:",
        "",
        *(
            line
            for example in command.examples
            for line in command_lines(f"  {example}", columns())
        ),
    ]


def placeholder(command: WorkflowCommand, option: Option) -> str:
    """Name what an option takes."""
    kind = record_class(command, option.kind)
    if is_settings(kind):
        return "FILE.yaml|JSON"
    if is_choice(kind):
        return "|".join(str(member.value) for member in kind)
    if option.kind.startswith(("list", "Annotated[list")):
        return "JSON"
    return "TEXT" if option.kind == "str" else "NUMBER"


def default_text(command: WorkflowCommand, option: Option) -> str:
    """Return the default as help shows it; `eachprompt settings` prints that of settings."""
    if option.default is None:
        return "[required]"
    kind = record_class(command, option.kind)
    if option.default in ("''", "[]") or is_settings(kind):
        return ""
    if is_choice(kind):
        return f"[default: {kind[option.default.rpartition('.')[2]].value}]"
    try:
        return f"[default: {ast.literal_eval(option.default)}]"
    except ValueError:  # the name of a constant, which only its module knows
        return ""


def is_list(text: str) -> bool:
    """True for a JSON list."""
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def is_choice(kind: object) -> TypeGuard[type[Enum]]:
    """True for a class of named values."""
    return isinstance(kind, type) and issubclass(kind, Enum)


def record_class(command: WorkflowCommand, name: str) -> object:
    """Import what a file imports by this name from data_schemas; None if it does not."""
    module = command.records.get(name)
    return getattr(importlib.import_module(module), name, None) if module else None


def preset(command: WorkflowCommand, option: Option) -> object:
    """Return the default of settings; None if the workflow computes it."""
    name, _, field = (option.default or "").partition(".")
    module = command.records.get(name)
    if module is None:
        return None
    if field:  # `from data_schemas import presets`, and `presets.CPU_SMOKE`
        return getattr(importlib.import_module(f"{module}.{name}"), field, None)
    return record_class(command, name)


def check_options(command: WorkflowCommand, arguments: Sequence[str]) -> None:
    """Refuse unknown options, wrong settings and wrong places before any library is loaded.

    `pyflyte run` checks everything again; what it alone can check is left to it.

    Raises:
        SettingsError: names the option, and the one that was meant.
    """
    typed, settings = read_options(command, arguments)
    importlib.import_module(EARLY).check(command.name.removeprefix("lab "), typed, settings)


def read_options(
    command: WorkflowCommand, arguments: Sequence[str]
) -> tuple[dict[str, str], object]:
    """Return the options that were given, without dashes, and the settings of the command.

    Raises:
        SettingsError: names the option, and the one that was meant.
    """
    options = {f"--{option.name}": option for option in command.options}
    typed: dict[str, str] = {}
    settings: object = None
    words = iter(arguments)
    for word in words:
        name, has_value, value = word.partition("=")
        if not name.startswith("--"):
            raise SettingsError(
                f"eachprompt {command.name} takes options only, and {word!r} is none; see --help"
            )
        if name not in options:
            there = likely(name, list(options))
            raise SettingsError(f"eachprompt {command.name} has no option {name}{there}")
        if name in typed:
            raise SettingsError(f"{name} is given twice; give it once")
        text = value if has_value else next(words, "")
        typed[name] = text
        check_value(command, options[name], text)
        model = record_class(command, options[name].kind)
        default = preset(command, options[name]) if is_settings(model) else None
        if is_settings(model) and isinstance(default, model):
            _, settings = read_settings(
                name.removeprefix("--"), model, default, settings_text(text)
            )
    for name, option in options.items():
        if option.default is None and name not in typed:
            raise SettingsError(f"{name} is missing; see eachprompt {command.name} --help")
        if settings is None and is_settings(record_class(command, option.kind)):
            settings = preset(command, option)
    return {name.removeprefix("--"): text for name, text in typed.items()}, settings


def check_value(command: WorkflowCommand, option: Option, text: str) -> None:
    """Refuse a number that is none, or is outside of its limits.

    Raises:
        SettingsError: names the option.
    """
    kind = NUMBERS.get(option.kind) or record_class(command, option.kind)
    if placeholder(command, option) == "JSON" and not is_list(text):
        raise SettingsError(f"--{option.name} is {text!r}; write a JSON list")
    if kind is None or is_settings(kind):
        return
    try:
        TypeAdapter(cast("Any", kind)).validate_strings(text)
    except ValidationError as error:
        message = str(error.errors()[0]["msg"]).replace("Input should be", "it must be")
        raise SettingsError(f"--{option.name} is {text}; {message}") from error


def settings_text(text: str) -> str:
    """Return the JSON of a setting: the text itself, or the content of the file that it names.

    Relative paths in a file begin at the folder of the file.

    Raises:
        SettingsError: the file is no YAML or JSON.
    """
    path = Path(text)
    if text.lstrip().startswith(("{", "[")):
        return text
    if path.suffix not in (".yaml", ".yml", ".json") or not path.is_file():
        raise SettingsError(
            f"--settings {text!r} is neither a JSON object nor a file (.yaml, .yml, .json); "
            "`eachprompt examples` lists those that come with the program"
        )
    try:
        content = load_yaml(path.read_bytes())
        values = located(content, path.parent) if isinstance(content, dict) else content
        return json.dumps(values)
    except ValueError as error:
        raise SettingsError(f"{path} {error}") from error


def likely(word: str, words: Sequence[str]) -> str:
    """Suggest the word that was meant, or list what there is."""
    close = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {close[0]}?" if close else f"; choose from {', '.join(words)}"


def start_workflow(command: WorkflowCommand, arguments: Sequence[str]) -> None:
    """Hand a command to `pyflyte run`, which ends the process."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    pyflyte = importlib.import_module("flytekit.clis.sdk_in_container.pyflyte")
    # pyflyte itself would read a file as YAML 1.1.
    words = list(arguments)
    for place, word in enumerate(words):
        if word.startswith(_SETTINGS):
            words[place] = _SETTINGS + settings_text(word.removeprefix(_SETTINGS))
        elif place and f"{words[place - 1]}=" == _SETTINGS:
            words[place] = settings_text(word)
    sys.argv = ["pyflyte", "run", str(command.file), command.function, *words]
    pyflyte.main(sys.argv[1:])


def columns() -> int:
    """Return the width of the terminal, at most 100."""
    return min(shutil.get_terminal_size((100, 40)).columns, 100)


def beside(head: str, text: str) -> list[str]:
    """Break a text into lines that stand to the right of a head."""
    first, *rest = wrapped(text, columns(), " " * len(head)) or [""]
    return [f"{head}{first.strip()}".rstrip(), *rest]


def print_lines(lines: Sequence[str]) -> None:
    """Write lines to standard output."""
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
