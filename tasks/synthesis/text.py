"""The table as Markdown, as an HTML page, and for a terminal, from the same rows."""

import html
from collections import Counter

from rich.console import RenderableType

from tasks.platform.tables import STYLE, html_table, markdown_table, screen_table
from tasks.synthesis.report import SynthesisReport

HEADER = ("claim", "number", "95 % interval", "by seed", "")
TITLE = "Synthesised problems"


def rows(report: SynthesisReport) -> list[tuple[str, ...]]:
    """One line per claim."""
    return [
        (one.claim, one.number, one.interval, one.seeds, "shown" if one.shown else "not shown")
        for one in report.claims
    ]


def conditions(report: SynthesisReport) -> str:
    """Say what the numbers were measured on."""
    counts: Counter[str] = Counter()
    for cell in report.cells:
        counts.update(cell.left_out)
    kept = counts.pop("", 0)
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    return (
        f"{len(report.cells)} seeds; {kept} of {sum(c.written for c in report.cells)} written "
        f"problems kept, left out: {reasons or 'none'}. NLL: an upper bound, from samples of the "
        f"planner, on {len(report.cells[0].before.nll)} problems per seed that nothing was trained "
        f"on. Grading keeps {sum(c.trained for c in report.cells)} problems by the solver's pass "
        "rate against the label."
    )


def markdown(report: SynthesisReport) -> str:
    """Format the table as Markdown."""
    return f"# {TITLE}\n\n{markdown_table(HEADER, rows(report))}\n\n{conditions(report)}\n"


def page(report: SynthesisReport) -> str:
    """Format the table as one HTML page."""
    head = f"<!doctype html><meta charset=utf-8><title>{TITLE}</title><style>{STYLE}</style>"
    table = html_table(HEADER, rows(report))
    return f"{head}<h1>{TITLE}</h1>{table}<p>{html.escape(conditions(report))}</p>"


def screen(report: SynthesisReport) -> RenderableType:
    """Format the table for a terminal."""
    return screen_table(HEADER, rows(report))
