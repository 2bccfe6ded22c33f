"""Rows as a table: for a terminal, in Markdown, in HTML."""

import html
import io
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from data_schemas.reports import Claim
from data_schemas.texts import continued, on_one_line
from tasks.platform.log_lines import in_pod
from tasks.platform.page_style import STYLE

logger = logging.getLogger(__name__)

SCREEN_WIDTH = 132
"""Columns that the tables need."""
_INDENT = 4


class _LogLines(io.TextIOBase):
    """Takes what is printed in a pod, each line as a message of the log."""

    def write(self, text: str) -> int:
        """Log the lines that are not empty."""
        for line in text.splitlines():
            if line.strip():
                logger.info("%s", line.rstrip())
        return len(text)


class Screen(Console):
    """Standard output, on which a text of others is no markup and commands no terminal.

    A file may be called `[/b]`, which rich would stop at, or hold a code that clears a screen or a
    byte that is no UTF-8. Newlines stay: who prints a name or a message of others on a line, or in
    the cell of a table, writes it with `on_one_line`, as `print_line` and `screen_table` do.
    """

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
        if in_pod():  # whose log has one format
            defaults |= {"file": _LogLines(), "width": SCREEN_WIDTH}
        super().__init__(**defaults | options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; with `soft_wrap`, a terminal breaks a wide line between its words."""
        if self.soft_wrap and self.is_terminal:
            if not all(isinstance(one, str) for one in objects):
                options = {"soft_wrap": False} | options  # rich would cut what is no text
            objects = tuple(self._divided(one) if isinstance(one, str) else one for one in objects)
        super().print(*objects, **options)

    def _divided(self, text: str) -> str:
        return "\n".join(part for one in text.split("\n") for part in continued(one, self.width))

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """On a terminal too narrow for a table, every cell is a line: none breaks within a word."""
        width = (options or self.options).max_width
        if (
            self.is_terminal
            and isinstance(renderable, Table)
            and not _fits(renderable, self, width)
        ):
            renderable = Group(*_records(renderable, self))
        return super().render(renderable, options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Every string comes through here, those in tables and groups as well."""
        lines = "\n".join(map(on_one_line, text.split("\n")))
        plain: dict[str, Any] = {"markup": False, "emoji": False}
        return super().render_str(lines, **options | plain)


def print_line(text: str) -> None:
    """Print a message on one line, however long, whatever names of others it has."""
    Screen(soft_wrap=True).print(on_one_line(text))


def json_line(record: BaseModel) -> str:
    """Write a record as JSON on one line of ASCII, which every output can encode."""
    return json.dumps(record.model_dump(mode="json"), separators=(",", ":"))


def screen_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Format rows for a terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place == 0 or not name else "right")
    for row in rows:
        table.add_row(*map(on_one_line, row))
    return table


def show_table(table: Table, least: int = SCREEN_WIDTH) -> None:
    """Print a table; what is no terminal, such as a file, gets as many columns as it needs.

    Args:
        table: its first column names the rows.
        least: width in columns within which its cells wrap.
    """
    screen = Screen()
    if not screen.is_terminal:
        screen.width = max(screen.width, min(least, _width(screen, table)))
    screen.print(table)


def _fits(table: Table, console: Console, width: int) -> bool:
    """Tell whether a table fits, its widest column wrapped between words if need be.

    rich narrows the widest column until it is as wide as the next one, and then both.
    """
    missing = _width(console, table) - width
    if missing <= 0 or len(table.columns) == 1:
        return True
    columns = [[_text(one, console) for one in (c.header, *c.cells)] for c in table.columns]
    *_, second, widest = sorted(columns, key=lambda cells: max(map(cell_len, cells)))
    words = [word for cell in widest for word in cell.split()]
    left = max(map(cell_len, widest)) - missing
    return left >= max(map(cell_len, [*second, *words]))


def _records(table: Table, console: Console) -> Iterator[RenderableType]:
    """Yield the first cell of every row, and below it a line for each of the others."""
    if table.title:
        yield table.title
    heads = [_text(column.header, console) for column in table.columns]
    for first, *rest in zip(*(column.cells for column in table.columns), strict=True):
        yield first
        for head, cell in zip(heads[1:], rest, strict=True):
            if text := _text(cell, console):
                yield Padding(Text(f"{head}: {text}" if head else text), (0, 0, 0, _INDENT))


def _text(cell: RenderableType, console: Console) -> str:
    return console.render_str(cell).plain if isinstance(cell, str) else str(cell)


def _width(console: Console, table: Table) -> int:
    unlimited = console.options.update(max_width=sys.maxsize)
    return Measurement.get(console, unlimited, table).maximum


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format rows as a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format rows as an HTML table."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table with its title and the conditions under which its numbers were measured."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    conditions: str

    @property
    def markdown(self) -> str:
        """A Markdown document."""
        table = markdown_table(self.header, self.rows)
        return f"# {self.title}\n\n{table}\n\n{self.conditions}\n"

    @property
    def page(self) -> str:
        """An HTML page."""
        title, table = html.escape(self.title), html_table(self.header, self.rows)
        return (
            f"<!doctype html><meta charset=utf-8><title>{title}</title>"
            f'<meta name=viewport content="width=device-width"><style>{STYLE}</style>'
            f"<header><div><h1>{title}</h1></div></header><main style='padding-top:24px'>"
            f"<section><div class='card scroll'>{table}</div></section>"
            f"<p class=lede style='margin:18px 0'>{html.escape(self.conditions)}</p></main>"
        )

    def show(self) -> None:
        """Print the table, in as many columns as it needs."""
        show_table(screen_table(self.header, self.rows))


def claim_sheet(title: str, claims: Sequence[Claim], conditions: str) -> Sheet:
    """Tabulate the claims of a study, shown or not."""
    rows = [
        (one.claim, one.number, one.interval, one.seeds, "shown" if one.shown else "not shown")
        for one in claims
    ]
    return Sheet(title, ("claim", "number", "95 % interval", "by seed", ""), rows, conditions)
