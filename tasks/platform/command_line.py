"""Errors on the command line: one line on standard error, and the exit code.

2 = an input is wrong (a setting, a path, an option); 1 = any other error of `tasks.errors`, or of
the machine: a file that cannot be read, no memory left, an input nested too deeply. All other
exceptions are bugs and keep their traceback, as do all errors in a pod and under `pyflyte -v run`.
"""

import argparse
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from data_schemas.machine_settings import LARGEST
from data_schemas.texts import continued, fitted, on_one_line
from tasks.errors import PipelineError, SettingsError
from tasks.platform.environment import WRONG_INPUT
from tasks.store.files import disk_error

FAILED = 1


_KNOWN = (PipelineError, OSError, MemoryError, RecursionError)
_NO_MEMORY = ("can't start new thread", "can't allocate memory", "out of memory")
"""What Python and torch say in a RuntimeError when there is no memory left."""


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error."""
    return WRONG_INPUT if isinstance(error, SettingsError) else FAILED


def line_of(error: BaseException) -> str:
    """Return what is printed of an error."""
    error = disk_error(error, Path.cwd()) or error
    if isinstance(error, PipelineError):
        # What others named may hold a newline: only the first line begins at column 0.
        lines = [on_one_line(line) for line in str(error).split("\n")]
        return "\n  ".join([f"{type(error).__name__}: {lines[0]}", *lines[1:]])
    kind = MemoryError if isinstance(error, RuntimeError) and _is_known(error) else type(error)
    kind = RecursionError if isinstance(error, RecursionError) else kind
    hints = {
        MemoryError: "there is no memory left; use smaller batches or a larger machine",
        RecursionError: "an input is nested too deeply to be read",
    }
    text = hints.get(kind) or " ".join(str(error).split())[:300]
    return f"{kind.__name__}: {text}. `pyflyte -v run` shows where."


def _is_known(error: BaseException) -> bool:
    return isinstance(error, _KNOWN) or any(phrase in str(error) for phrase in _NO_MEMORY)


def is_typed_by_hand() -> bool:
    """True if `pyflyte` was called from a command line without -v, which asks for tracebacks."""
    command = click.get_current_context(silent=True)
    return command is not None and not command.find_root().params.get("verbose")


@contextmanager
def print_errors_on_one_line() -> Iterator[None]:
    """Print a `PipelineError` as one line if the command was typed; otherwise re-raise it.

    Raises:
        Exit: with the error's exit code, which click ends the process with.
    """
    try:
        yield
    except (*_KNOWN, RuntimeError) as error:
        if not is_typed_by_hand() or not _is_known(error):
            raise
        click.echo(fit(line_of(error), sys.stderr), err=True)
        raise click.exceptions.Exit(exit_code(error)) from error


def run(main: Callable[[Sequence[str]], None], arguments: Sequence[str] | None = None) -> None:
    """Run the main function of a `python -m` command and end the process.

    Args:
        main: takes the arguments after the command.
        arguments: None = those of this process.
    """
    try:
        sys.exit(main(sys.argv[1:] if arguments is None else arguments))
    except (*_KNOWN, RuntimeError) as error:
        if not _is_known(error):
            raise
        click.echo(fit(line_of(error), sys.stderr), err=True)
        sys.exit(exit_code(error))


def fit(text: str, stream: TextIO) -> str:
    """Break lines between their words where a terminal would break them within one.

    What is no terminal, such as a file or another program, gets every line as it is.
    """
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size((80, 40)).columns
    return "\n".join(part for line in text.split("\n") for part in continued(line, width))


class CommandHelp(argparse.HelpFormatter):
    """Break description and examples at the width of the screen, between words."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{line}".rstrip() for line in fitted(text, width))


def command_parser(
    name: str, about: str | None, examples: str | None = None
) -> argparse.ArgumentParser:
    """Return the parser of a command, which has no options yet.

    Args:
        name: as it is typed.
        about: what its help begins with.
        examples: what its help ends with.
    """
    return argparse.ArgumentParser(
        prog=name, description=about, epilog=examples, formatter_class=CommandHelp
    )


def positive(text: str) -> int:
    """Read a count from a command line of argparse.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or not 1 <= int(text) <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 on")
    return int(text)


def positive_number(text: str) -> float:
    """Read a rate from a command line of argparse.

    Raises:
        ArgumentTypeError: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} must be a positive number")
    return number


def refuse_repeated(arguments: Sequence[str], options: Sequence[str]) -> None:
    """Refuse an option that is given twice: click would silently keep the last one.

    Raises:
        SettingsError: names the option.
    """
    names = [argument.partition("=")[0] for argument in arguments]
    for option in options:
        if names.count(f"--{option}") > 1:
            raise SettingsError(
                f"--{option} is given {names.count(f'--{option}')} times, and only the last would "
                "be used; combine them into one"
            )
