"""The claims as Markdown, as an HTML page, and for a terminal."""

import html

from rich.console import RenderableType

from tasks.claims.table import Evidence, rows
from tasks.platform.tables import STYLE, html_table, markdown_table, screen_table

HEADER = ("claim", "paper", "ours", "interval", "verdict")
TITLE = "Claims of the papers"


def conditions(evidence: Evidence) -> str:
    """Say under which conditions the numbers were measured."""
    study, judge = evidence.study, evidence.judge
    return (
        f"Ours: {study.max_tokens:,} generated tokens per phase, {len(study.seeds)} seeds, "
        f"{study.problems} held-out problems with {study.samples} responses each, a start model "
        f"of {study.start.mean:.1%}; the judge on {judge.held_out_pairs} held-out comparisons. "
        "Intervals: 95 %, bootstrap over problems, steps or tasks, in the unit of the number. "
        "Shown: the claimed sign, an interval without 0 and, for accuracy, the same sign for "
        "every seed; without an interval: the claimed sign."
    )


def markdown(evidence: Evidence) -> str:
    """Format the table as Markdown."""
    return f"# {TITLE}\n\n{markdown_table(HEADER, rows(evidence))}\n\n{conditions(evidence)}\n"


def page(evidence: Evidence) -> str:
    """Format the table as one HTML page."""
    head = f"<!doctype html><meta charset=utf-8><title>{TITLE}</title><style>{STYLE}</style>"
    table = html_table(HEADER, rows(evidence))
    return f"{head}<h1>{TITLE}</h1>{table}<p>{html.escape(conditions(evidence))}</p>"


def screen(evidence: Evidence) -> RenderableType:
    """Format the table for a terminal."""
    return screen_table(HEADER, rows(evidence))
