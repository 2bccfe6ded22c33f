"""The report as Markdown, terminal output and HTML, from the same rows and sentences."""

import base64
import html as markup

from rich.console import Group, RenderableType
from rich.text import Text

from tasks.ablation.report import PAPER_FALL, AblationReport, Line
from tasks.ablation.schedules import SLOTS
from tasks.algorithms.estimators import Interval
from tasks.platform.tables import STYLE, html_table, markdown_table, screen_table

LEARNED = ("variant", "", "steps", "reward", "held-out accuracy", "difference", "to", "certain")
COST = (
    "variant",
    "zv first",
    "zv trained",
    "tokens per solved",
    "tokens per point",
    "grad variance",
    "relative",
    "clipped",
    "staleness",
    "mismatch nats",
    "wait s/step",
    "step s",
)


def learned_rows(report: AblationReport) -> list[tuple[str, ...]]:
    """Reward and held-out accuracy of every variant."""
    return [
        (
            line.variant,
            line.meaning,
            f"{line.steps:.0f}",
            f"{line.reward:.3f}",
            _share(line.accuracy),
            "" if _is_baseline(line) else _points(line.difference),
            "" if _is_baseline(line) else line.against,
            "" if _is_baseline(line) else ("yes" if line.certain else "no"),
        )
        for line in report.lines
    ]


def cost_rows(report: AblationReport) -> list[tuple[str, ...]]:
    """Zero variance, tokens, gradients and seconds of every variant."""
    return [
        (
            line.variant,
            f"{line.flat_first:.1%}",
            f"{line.flat_trained:.1%}",
            f"{line.tokens_per_solved:.0f}",
            "no gain" if line.tokens_per_point is None else f"{line.tokens_per_point:.0f}",
            f"{line.gradient_variance:.2e}",
            f"{line.gradient_relative_variance:.3f}",
            f"{line.clip_share:.1%}",
            f"{line.staleness:.2f}",
            f"{line.mismatch_nats:.1e}",
            f"{line.wait_s:.2f}",
            f"{line.step_s:.2f}",
        )
        for line in report.lines
    ]


def findings(report: AblationReport) -> list[str]:
    """Summarise the tables in sentences."""
    compared = [line for line in report.lines if not _is_baseline(line)]
    sure = [f"{line.variant} ({_points(line.difference)})" for line in compared if line.certain]
    open_ = [line.variant for line in compared if not line.certain]
    seeds = ", ".join(map(str, report.seeds))
    full = report.lines[0]
    orders = report.orders
    return [
        f"{report.max_tokens:,} generated tokens per phase; seeds {seeds}; {report.problems} "
        f"held-out problems, {report.samples} responses each. Intervals: 95 %, bootstrap over "
        "problems (mean over the seeds).",
        "The reward is measured on the prompts that a variant draws: skipping or reordering "
        "prompts raises it without any learning, so variants are compared by held-out accuracy.",
        f"Certain (interval excludes 0, same sign for every seed): {', '.join(sure) or 'none'}. "
        f"By chance alone {len(compared) / 20:.1f} of {len(compared)} intervals exclude 0.",
        f"No certain difference: {', '.join(open_) or 'none'}.",
        f"The start model answers {_share(report.start)}. Tokens per point: generated tokens per "
        "point of held-out accuracy above it. Saved against the compared variant: "
        + ", ".join(f"{line.variant} {_percent(line.saving)}" for line in compared)
        + ".",
        *(
            f"Zero-variance rate of {fall.rate}: {fall.without:.1%} with all stages off, "
            f"{fall.with_stages:.1%} with all on: a reduction by {_percent(fall.relative)} "
            f"(per seed {', '.join(f'{seed:.0%}' for seed in fall.seeds)}); the paper's "
            f"{PAPER_FALL:.0%} is {_verdict(fall.relative)}. Interval: bootstrap over steps."
            for fall in report.falls
        ),
        f"Overlap: verification takes {full.verify_s:.2f} s of one worker per step; when it runs "
        f"during rollouts, a step waits {full.wait_s:.2f} s for the last verdict. "
        "Verdicts are equal.",
        f"Order: on {SLOTS} slots a step's first draw takes {orders.as_drawn:.1f} decoding steps "
        f"as drawn, {orders.longest_first:.1f} longest first by predicted length, "
        f"{orders.known_lengths:.1f} "
        "longest first by true length (simulated from the ledger's mean lengths; the embedded "
        "engine decodes a step at once, so the order has no effect there).",
    ]


def markdown(report: AblationReport) -> str:
    """Format the report as Markdown."""
    parts = ["# Ablation", markdown_table(LEARNED, learned_rows(report))]
    parts += [markdown_table(COST, cost_rows(report)), *findings(report)]
    return "\n\n".join(parts) + "\n"


def page(report: AblationReport, picture: bytes) -> str:
    """Format the report as one HTML page, figure included."""
    encoded = base64.b64encode(picture).decode()
    return "".join(
        (
            f"<!doctype html><meta charset=utf-8><title>Ablation</title><style>{STYLE}</style>",
            f'<h1>Ablation</h1><img alt="differences" src="data:image/png;base64,{encoded}">',
            html_table(LEARNED, learned_rows(report)),
            html_table(COST, cost_rows(report)),
            *(f"<p>{markup.escape(sentence)}</p>" for sentence in findings(report)),
        )
    )


def screen(report: AblationReport) -> RenderableType:
    """Format the report for a terminal."""
    return Group(
        screen_table(LEARNED, learned_rows(report)),
        screen_table(COST, cost_rows(report)),
        *(Text(sentence) for sentence in findings(report)),
    )


def _is_baseline(line: Line) -> bool:
    return line.variant == line.against


def _share(found: Interval) -> str:
    return f"{found.mean:.1%} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def _percent(found: Interval) -> str:
    return f"{found.mean:.0%} [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def _points(found: Interval) -> str:
    return f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _verdict(fall: Interval) -> str:
    if fall.low >= PAPER_FALL:
        return "exceeded with certainty"
    return "reached, but not with certainty" if fall.mean >= PAPER_FALL else "not reached"
