"""The study as Markdown, as an HTML page, and for a terminal, from the same rows."""

import html

from rich.console import RenderableType

from tasks.algorithms.estimators import Interval
from tasks.platform.tables import STYLE, html_table, markdown_table, screen_table
from tasks.scaffold.report import ScaffoldReport

HEADER = ("claim", "number", "95 % interval", "by seed", "")
TITLE = "RuscaRL's scaffold"


def rows(report: ScaffoldReport) -> list[tuple[str, ...]]:
    """One line per claim."""
    return [
        (one.claim, one.number, one.interval, one.seeds, "shown" if one.shown else "not shown")
        for one in report.claims
    ]


def conditions(report: ScaffoldReport) -> str:
    """Say under which conditions the numbers were measured."""
    lift, cells = report.lift, report.cells
    tokens = [cell.tokens for cell in cells]
    variants = "; ".join(f"{name} {_percent(score)}" for name, score in report.scores.items())
    return (
        f"Gate: with all criteria in the prompt the start model scores {lift.shown:.1%}, without "
        f"{lift.bare:.1%}: {_percent(lift.lift)} on {len(lift.scores)} problems that are trained "
        f"on. {len({cell.seed for cell in cells})} seeds, {min(tokens):,} to {max(tokens):,} "
        f"generated tokens per phase, {len(cells[0].scores)} held-out problems. Held-out score "
        f"under bare prompts: start {_percent(report.start)}; {variants}."
    )


def markdown(report: ScaffoldReport) -> str:
    """Format the table as Markdown."""
    return f"# {TITLE}\n\n{markdown_table(HEADER, rows(report))}\n\n{conditions(report)}\n"


def page(report: ScaffoldReport) -> str:
    """Format the table as one HTML page."""
    head = f"<!doctype html><meta charset=utf-8><title>{TITLE}</title><style>{STYLE}</style>"
    table = html_table(HEADER, rows(report))
    return f"{head}<h1>{TITLE}</h1>{table}<p>{html.escape(conditions(report))}</p>"


def screen(report: ScaffoldReport) -> RenderableType:
    """Format the table for a terminal."""
    return screen_table(HEADER, rows(report))


def _percent(value: Interval) -> str:
    return f"{value.mean:.1%} [{value.low:.1%}, {value.high:.1%}]"
