"""One test for all rows of a table, where a test of its own for each costs more than the row."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
MARKED = type(pytest.param())


def for_each(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Call the test with every row, and raise what failed together, each with its row.

    Takes what `pytest.mark.parametrize` takes, but no marks of single rows. To collect, set up and
    report a test takes four milliseconds of CPU: a table is for rows that take less. The test is
    skipped where every row is.

    Args:
        names: of the parameters of a row; with one name as text, a row is its value.
        rows: at least one. They share the fixtures of the test, which no row may change.
    """
    columns = (names,) if isinstance(names, str) else tuple(names)
    table = [(row,) if isinstance(names, str) else row for row in rows]
    assert table
    assert not any(isinstance(one, MARKED) for row in table for one in (row, *row))

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        fixtures = [one for name, one in signature.parameters.items() if name not in columns]
        assert len(fixtures) + len(columns) == len(signature.parameters)

        @functools.wraps(test)
        def test_rows(**arguments: Any) -> None:
            failures, skipped = [], []
            for row in table:
                try:
                    test(**arguments, **dict(zip(columns, row, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                # pytest.fail, and pytest.raises without an exception, are no Exception.
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001
                    failure.add_note(f"row: {row!r}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows", failures)
            if len(skipped) == len(table):
                raise skipped[0]

        # What pytest takes the names of the fixtures from.
        test_rows.__signature__ = signature.replace(parameters=fixtures)
        return test_rows

    return decorate
