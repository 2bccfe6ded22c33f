"""Rows as a table: for a terminal, in Markdown, in HTML."""

import html
from collections.abc import Sequence

from rich import box
from rich.table import Table

SCREEN_WIDTH = 132
"""Columns that the tables need."""
STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem;max-width:72rem}img{max-width:100%}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "td,th{padding:.3rem .8rem;border-bottom:1px solid #ddd;"
    "text-align:left;font-variant-numeric:tabular-nums}"
)


def screen_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Format rows for a terminal."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(header):
        shown.add_column(name, justify="left" if place == 0 or not name else "right")
    for row in rows:
        shown.add_row(*row)
    return shown


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
    return f"<table><tr>{head}</tr>{body}</table>"
