"""Every adapter, mapping file, suite, group of suites and verifier of the project.

Each with what it needs: the columns of a row, or the `answer` of a mapping file.

eachprompt data
"""

import inspect

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tasks.curation.adapters.table import ADAPTERS
from tasks.formats.benchmark_file import SHIPPED as BENCHMARKS
from tasks.formats.benchmark_file import shipped_groups, shipped_suites
from tasks.formats.mapping_files import SHIPPED, shipped_mappings
from tasks.gym.scoring.canaries import example_answer
from tasks.gym.table import VERIFIERS

NARROWEST = 110
"""Smallest width in columns at which the columns are readable."""


def table() -> Table:
    """List adapters, mappings, suites, groups of suites with their members, and verifiers."""
    result = Table(box=None)
    result.add_column("name", no_wrap=True)
    for head in ("columns that a row needs", "reads"):
        result.add_column(head, overflow="fold")
    for name, adapter in sorted(ADAPTERS.items()):
        about = (inspect.getdoc(adapter.read) or "").splitlines()[0]
        result.add_row(name, escape(", ".join(adapter.columns)), escape(about))
    result.add_section()
    for name, mapping in shipped_mappings().items():
        about = (SHIPPED / f"{name}.yaml").read_text().splitlines()[0].removeprefix("# ")
        result.add_row(name, escape(", ".join(mapping.columns)), escape(about))
    result.add_section()
    for name, suite in shipped_suites().items():
        about = (BENCHMARKS / f"{name}.yaml").read_text().splitlines()[0].removeprefix("# ")
        rows = ", ".join(suite.mapping.columns) if suite.mapping else f"those of {suite.rows}"
        result.add_row(f"suite {name}", escape(rows), escape(about))
    result.add_section()
    for name, group in shipped_groups().items():
        about = (BENCHMARKS / f"{name}.yaml").read_text().splitlines()[0].removeprefix("# Group: ")
        result.add_row(f"group {name}", escape(", ".join(group.members)), escape(about))
    result.add_section()
    for name, verify in sorted(VERIFIERS.items()):
        about = (inspect.getdoc(verify) or "").splitlines()
        result.add_row(
            f"verifier {name}",
            escape(f"answer: {example_answer(name)}"),
            escape(about[0] if about else "Asks the judge that the settings name."),
        )
    return result


def show() -> None:
    """Print the table."""
    console = Console(highlight=False)
    Console(highlight=False, width=max(console.width, NARROWEST)).print(table())
