"""Every forgery, tampering and kill of the suite in one run, with a table of what held.

    python -m tests.attack [--evidence FILE] [options of pytest]

The name of a test is the sentence that it proves. With a file, the table is kept there as Markdown;
nothing is kept of a run without cases, or in which one did not hold.
"""

import argparse
import datetime
import shlex
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

Cases = dict[tuple[str, str], list[str]]
"""(file, sentence) -> outcome of each case."""


class Outcomes:
    """A plugin of pytest that keeps the outcome of every case."""

    def __init__(self) -> None:
        self.cases: Cases = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of the test itself, or of a fixture that failed or skipped it."""
        if report.when != "call" and report.passed:
            return
        file, _, name = report.nodeid.partition("::")
        sentence = name.rpartition("::")[2].partition("[")[0].removeprefix("test_")
        self.cases[file, sentence.replace("_", " ")].append(report.outcome)


def table_of(cases: Cases) -> Table:
    """Build the table: one line per sentence, and their sum."""
    table = Table("area", "what was attempted, and what is said about it", box=None)
    for head in ("cases", "held", "skipped"):
        table.add_column(head, justify="right")
    total = [0, 0, 0]
    for (file, sentence), outcomes in sorted(cases.items()):
        area = Path(file).with_suffix("").as_posix().removeprefix("tests/").replace("/test_", ": ")
        counts = [len(outcomes), outcomes.count("passed"), outcomes.count("skipped")]
        is_broken = counts[0] > counts[1] + counts[2]
        table.add_row(area, sentence, *map(str, counts), style="red" if is_broken else "")
        total = [old + new for old, new in zip(total, counts, strict=True)]
    table.add_row("", "all", *map(str, total), style="bold")
    return table


def page_of(table: Table, day: datetime.date, arguments: list[str]) -> str:
    """Write the table of a run with these arguments as a page."""
    columns = [list(column.cells) for column in table.columns]
    heads = [str(column.header) for column in table.columns]
    align = ["---", "---", "---:", "---:", "---:"]
    rows = [heads, align, *(list(map(str, row)) for row in zip(*columns, strict=True))]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        "# Forgeries, tamperings and kills\n\n"
        f'Written by `make attack ARGS="{shlex.join(arguments)}"` on {day}.\n'
        "Skipped are levels of the sandbox that the machine did not have, and compiled programs on "
        "all but the lowest. Who can do what: [threat model](THREATS.md).\n\n"
        f"{lines}\n"
    )


def main(arguments: list[str]) -> int:
    """Run what is marked and print the table; pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("--evidence", type=Path, metavar="FILE")
    given, others = parser.parse_known_args(arguments)
    outcomes = Outcomes()
    code = pytest.main(["-m", "attack", *others], plugins=[outcomes])
    table = table_of(outcomes.cases)
    Console(width=150, highlight=False).print(table)
    if given.evidence and not code:
        if not outcomes.cases:
            sys.stderr.write(f"{given.evidence} is not written: no case was run\n")
            return 1
        today = datetime.datetime.now(datetime.UTC).date()
        given.evidence.write_text(page_of(table, today, arguments))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
