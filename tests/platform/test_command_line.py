"""Errors on the command line: one line and an exit code, also for what the machine raises."""

import pytest

from tasks.errors import DataError, SettingsError
from tasks.formats.yaml_file import parse_yaml
from tasks.platform.command_line import run


def raising(error: BaseException):
    def main(_: object) -> None:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SettingsError("no such store"), 2, "SettingsError: no such store"),
        (DataError("it is gone"), 1, "DataError: it is gone"),
        (PermissionError(13, "Permission denied", "/x"), 1, "PermissionError: [Errno 13]"),
        (MemoryError(), 1, "MemoryError: there is no memory left"),
        (RuntimeError("can't start new thread"), 1, "MemoryError: there is no memory left"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 1, "MemoryError: there is"),
        (RecursionError("maximum depth"), 1, "RecursionError: an input is nested too deeply"),
    ],
)
def test_an_error_is_one_line_with_its_exit_code(error, code, line, capsys):
    with pytest.raises(SystemExit) as ended:
        run(raising(error), [])
    printed = capsys.readouterr().err

    assert code == ended.value.code
    assert printed.startswith(line)
    assert 1 == printed.count("\n")


def test_a_bug_keeps_its_traceback():
    with pytest.raises(KeyError):
        run(raising(KeyError("x")), [])


def test_a_mapping_of_twenty_thousand_brackets_is_refused_in_one_line():
    with pytest.raises(SettingsError, match="mapping is nested too deeply"):
        parse_yaml("[" * 20_000, "mapping")
