"""Every adapter, mapping file, suite, group of suites and verifier of the project.

Each with what it needs: the columns of a row, or the `answer` of a mapping file.

eachprompt data
"""

import inspect
import shutil
import sys
from collections.abc import Iterator, Sequence

from data_schemas.texts import wrapped
from tasks.curation.adapters.table import ADAPTERS
from tasks.formats.benchmark_file import SHIPPED as BENCHMARKS
from tasks.formats.benchmark_file import shipped_groups, shipped_suites
from tasks.formats.mapping_files import SHIPPED, shipped_mappings
from tasks.gym.scoring.canaries import example_answer
from tasks.gym.table import VERIFIERS

INDENT = " " * 6
Entry = tuple[str, str, str]
"""Name, what it is, what it needs."""


def groups() -> dict[str, list[Entry]]:
    """Return the entries of every group, by what its heading says."""
    return {
        "Adapters read a known layout; a row has these columns": [
            (name, _first_line(inspect.getdoc(one.read)), ", ".join(one.columns))
            for name, one in sorted(ADAPTERS.items())
        ],
        "Mapping files name the columns of a table": [
            (
                name,
                (SHIPPED / f"{name}.yaml").read_text().splitlines()[0].removeprefix("# "),
                ", ".join(mapping.columns),
            )
            for name, mapping in shipped_mappings().items()
        ],
        "Suites are benchmarks": [
            (
                f"suite {name}",
                (BENCHMARKS / f"{name}.yaml").read_text().splitlines()[0].removeprefix("# "),
                ", ".join(suite.mapping.columns) if suite.mapping else f"those of {suite.rows}",
            )
            for name, suite in shipped_suites().items()
        ],
        "Groups name several suites at once": [
            (
                f"group {name}",
                (BENCHMARKS / f"{name}.yaml").read_text().splitlines()[0].removeprefix("# Group: "),
                ", ".join(group.members),
            )
            for name, group in shipped_groups().items()
        ],
        "Verifiers score a response against the answer of a mapping": [
            (
                f"verifier {name}",
                _first_line(inspect.getdoc(verify)) or "Asks the judge that the settings name.",
                f"answer: {example_answer(name)}",
            )
            for name, verify in sorted(VERIFIERS.items())
        ],
    }


def lines(width: int) -> Iterator[str]:
    """Yield the lines of all groups, broken between words."""
    for number, (heading, entries) in enumerate(groups().items()):
        yield from [""] * (number > 0)
        yield from (*wrapped(f"{heading}:", width), "")
        for name, about, needs in entries:
            yield f"  {name}"
            yield from (*wrapped(about, width, INDENT), *wrapped(needs, width, INDENT))


def _first_line(text: str | None) -> str:
    parts: Sequence[str] = (text or "").splitlines()
    return parts[0] if parts else ""


def show() -> None:
    """Print the groups, in the width of the terminal."""
    width = min(shutil.get_terminal_size((100, 40)).columns, 100)
    sys.stdout.write("\n".join(lines(width)) + "\n")
