"""What a person sees while a stage runs: progress, lines of the log, tables."""

import html
import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tqdm import tqdm

from data_schemas.reports import Claim
from data_schemas.texts import on_one_line
from tasks.errors import PipelineError

# Progress for people, on standard error: bars that go away, and lines that stay.
#
# A bar appears on a terminal only, one at a time, and only if the loop lasts longer than two
# seconds; it has a rate and the remaining time. A log, and a file that the screen of a run was sent
# to, have lines: of a loop, one a minute.

Item = TypeVar("Item")
LINE_EVERY_S = 60.0
"""Between two lines where there is no terminal: in a pod, or in a file."""
logger = logging.getLogger(__name__)


def progress(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """Pass items through while a bar, unless there is one, or lines show how far the loop is."""
    if sys.stderr.isatty():
        if len(getattr(tqdm, "_instances", ())):
            yield from items
        else:
            yield from tqdm(
                items, desc=title, total=total, delay=2.0, dynamic_ncols=True, leave=False
            )
        return
    logged = time.monotonic()
    of = f" of {total:,}" if total is not None else ""
    for number, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - logged >= LINE_EVERY_S:
            logged = time.monotonic()
            line = f"{title}: {number:,}{of}"
            logger.info(line) if in_pod() else say(line)


def in_pod() -> bool:
    """True in a container on a cluster, where each stage has an image of its own."""
    return FIELDS["execution"] in os.environ


def say(line: str) -> None:
    """Write a line that stays, above the bar if there is one."""
    tqdm.write(line, file=sys.stderr)


# Lines of a pod's log: one JSON object each, with time, level, execution, stage and attempt.
#
# Only on a cluster, where a collector reads them; a terminal gets Python's own plain lines.

FIELDS = {
    "execution": "FLYTE_INTERNAL_EXECUTION_ID",
    "stage": "FLYTE_INTERNAL_TASK_NAME",
    "attempt": "FLYTE_ATTEMPT_NUMBER",
}
"""Field of a line -> variable of the pod."""
OURS = "tasks"
"""Loggers of this project write from INFO on, those of libraries from WARNING on."""


class Lines(logging.Formatter):
    """Writes a record as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {"time": time, "level": record.levelname, "logger": record.name}
        entry |= {name: os.environ[key] for name, key in FIELDS.items() if key in os.environ}
        entry["message"] = record.getMessage()
        if record.exc_info and not isinstance(record.exc_info[1], PipelineError):
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def configure() -> None:
    """Write JSON in a pod, without what flytekit and s3fs say about themselves in every pod.

    flytekit's own handler writes JSON of another form; its lines go where all others do.
    """
    if not in_pod():
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(OURS).setLevel(logging.INFO)
    # Fields of models that no workflow takes an attribute of; sessions that end with the process.
    flytekit = logging.getLogger("flytekit")
    flytekit.setLevel(logging.ERROR)
    flytekit.handlers.clear()
    flytekit.propagate = True
    for name in ("asyncio", "flytekit"):
        logging.getLogger(name).addFilter(_is_news)


_NO_NEWS = (
    "Unclosed client session",
    "Unclosed connector",
    "!! Begin ",
    "!! End ",
    "Exception when executing task ",
)
"""Of lines: s3fs leaves its sessions to the end of the process; flytekit frames an error's text."""


def _is_news(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    return not any(phrase in message for phrase in _NO_NEWS)


# Rows as a table: for a terminal, in Markdown, in HTML.

SCREEN_WIDTH = 132
"""Columns that the tables need."""
STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem;max-width:72rem}img{max-width:100%}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "td,th{padding:.3rem .8rem;border-bottom:1px solid #ddd;"
    "text-align:left;font-variant-numeric:tabular-nums}"
)


class Screen(Console):
    """Standard output, on which a text of others is no markup and commands no terminal.

    A file may be called `[/b]`, which rich would stop at, or hold a code that clears a screen or a
    byte that is no UTF-8. Newlines stay: who prints a name or a message of others on a line, or in
    the cell of a table, writes it with `on_one_line`, as `print_line` and `screen_table` do.
    """

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
        super().__init__(**defaults | options)

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
        title = html.escape(self.title)
        head = f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style>"
        table = html_table(self.header, self.rows)
        return f"{head}<h1>{title}</h1>{table}<p>{html.escape(self.conditions)}</p>"

    def show(self) -> None:
        """Print the table, in as many columns as it needs."""
        width = max(Screen().width, SCREEN_WIDTH)
        Screen(width=width).print(screen_table(self.header, self.rows))


def claim_sheet(title: str, claims: Sequence[Claim], conditions: str) -> Sheet:
    """Tabulate the claims of a study, shown or not."""
    rows = [
        (one.claim, one.number, one.interval, one.seeds, "shown" if one.shown else "not shown")
        for one in claims
    ]
    return Sheet(title, ("claim", "number", "95 % interval", "by seed", ""), rows, conditions)
