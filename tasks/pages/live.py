"""The page of a running phase of RL, from what its steps recorded."""

from collections.abc import Sequence
from itertools import accumulate
from math import isfinite, nan
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from numpy.typing import NDArray

from data_schemas.ledgers import TokenUse
from data_schemas.reports import MONITOR
from tasks.algorithms.mismatch import QUARTERS
from tasks.algorithms.token_uses import goodput
from tasks.algorithms.watched_rewards import divergence
from tasks.formats.script_data import script_json, visible
from tasks.pages import wording
from tasks.pages.live_template import PAGE
from tasks.pages.live_views import Responses, StepView
from tasks.pages.step_slices import COLUMNS, NOTE, slice_lines

MAX_TOKENS = 40_000
"""Response tokens on a page: about 2 MB."""
DIGITS = 4
"""Decimals of a log-probability on the page."""
REFRESH_S = 5
SLOWEST = 10
CURVES: tuple[tuple[str, str, str], ...] = (
    ("reward/mean", "Reward", "mean score of the responses with a verdict"),
    ("reward/solved_share", "Solved", "share of the responses with a verdict"),
    ("reward/above_graded", "Solved above grading", "share, minus the prompts' graded pass rate"),
    ("zero_variance/share", "Zero-variance groups", "share of prompts, first draw"),
    ("policy/entropy_nats", "Entropy", "nats per token"),
    ("policy/clip_share", "Clipped", "share of tokens"),
    ("policy/grad_norm", "Gradient norm", "before clipping"),
    ("rollout/length_tokens", "Response length", "tokens"),
    ("mismatch/k3", "Mismatch, k3", "trainer against rollout engine, nats"),
    ("mismatch/abs_logprob_p999", "Mismatch, largest tokens", "|dlogp|, 99.9 % quantile, nats"),
)
"""Metric of a step report, title, note. A metric that no step has is left out."""


def render(
    title: str,
    state: str,
    views: Sequence[StepView],
    responses: Responses | None,
    *,
    num_steps: int | None,
    running: bool,
    in_store: bool = True,
) -> str:
    """Build the page.

    Args:
        title: the phase and its execution.
        state: one line under the title.
        views: of all steps so far, at least one; what they do not say is not on the page.
        responses: of the newest step; None if its snapshot is too large for a page.
        num_steps: of the whole phase; None if its tokens end it.
        running: False for the last page of a phase, which does not load itself again.
        in_store: link to the list of executions, which lies beside it.
    """
    newest = views[-1]
    data = {
        "title": title,
        "state": ". ".join([state, *_divergences(views)]),
        "tiles": [*_tiles(newest, num_steps), *_goodput(views)],
        "curves": [
            *(curve for name in CURVES if (curve := _curve(views, *name))),
            *_goodput_curve(views),
            *_monitors(views),
            *_by_place(newest),
        ],
        "stacks": [
            stack | {"steps": [view.report.step for view in views]}
            for stack in (*_parts(views), *_uses(views))
        ],
        "slices": {
            "note": f"{NOTE}, of the steps so far",
            "columns": COLUMNS,
            "rows": [
                [line.label, *line.cells] for line in slice_lines([view.report for view in views])
            ],
        },
        "slowest": [
            [cost.problem_id, cost.engine_seconds, cost.verifier_seconds, cost.judge_calls]
            for cost in sorted(
                newest.costs, key=lambda cost: -(cost.engine_seconds + cost.verifier_seconds)
            )[:SLOWEST]
        ],
        "responses": None if responses is None else responses.model_dump(mode="json"),
        "no_responses": "The snapshot of this step is too large for a page.",
        "refresh_s": REFRESH_S if running else 0,
    }
    environment = Environment(autoescape=True, finalize=visible, undefined=StrictUndefined)
    # No '<' survives in the data, so that no text of a response can end the script element.
    text = script_json(data)
    return environment.from_string(PAGE).render(title=title, data=text, in_store=in_store)


def by_mismatch(
    gaps: Sequence[Sequence[float]], tokens: Sequence[Sequence[int]], max_tokens: int
) -> dict[int, list[int]]:
    """Choose the responses of a page: groups with the largest mismatch whose tokens fit.

    If no group fits, it is what fits of the first, and at least one response.

    Args:
        gaps: of every response of every group.
        tokens: likewise.
        max_tokens: on the page.

    Returns:
        The chosen responses of a group by its place, largest mismatch first.
    """
    order = sorted(range(len(gaps)), key=lambda place: -max(gaps[place], default=0.0))
    chosen: dict[int, list[int]] = {}
    for place in order:
        if sum(tokens[place]) <= max_tokens:
            chosen[place] = list(range(len(tokens[place])))
            max_tokens -= sum(tokens[place])
    if chosen or not order:
        return chosen
    ranked = sorted(range(len(gaps[order[0]])), key=lambda sample: -gaps[order[0]][sample])
    ends = accumulate(tokens[order[0]][sample] for sample in ranked)
    fitting = [sample for sample, end in zip(ranked, ends, strict=True) if end <= max_tokens]
    return {order[0]: sorted(fitting or ranked[:1])}


def rounded(values: NDArray[np.float32]) -> tuple[float, ...]:
    """Values for JSON: a token whose logits overflowed has no number and reads as 0."""
    finite = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return tuple(np.round(finite, DIGITS).tolist())


def _tiles(newest: StepView, num_steps: int | None) -> list[tuple[str, str]]:
    metrics = newest.report.metrics

    def tile(name: str, metric: str, form: str) -> list[tuple[str, str]]:
        if metric not in metrics:
            return []
        return [(name, f"{metrics[metric]:{form}}".replace("-", wording.MINUS))]

    total = sum(_parts_of(newest).values())
    step = newest.report.step
    whole = f" of {num_steps}" if num_steps else ""
    remaining = (
        [("left at this pace", f"{(num_steps - step) * total / 60:.0f} min")]
        if num_steps and num_steps > step
        else []
    )
    return [
        ("step", f"{step}{whole}"),
        *tile("mean reward", "reward/mean", ".3f"),
        *([("seconds of the step", f"{total:.1f}")] if total else []),
        *remaining,
        *tile("tokens of the step", "rollout/generated_tokens", ",.0f"),
        *tile("mismatch, k3 in nats", "mismatch/k3", ".1e"),
    ]


def _curve(views: Sequence[StepView], metric: str, title: str, note: str) -> dict[str, Any] | None:
    points = [
        (view.report.step, view.report.metrics[metric])
        for view in views
        if isfinite(view.report.metrics.get(metric, nan))  # JSON in a browser has no NaN
    ]
    if not points:
        return None
    return {"title": title, "note": note, "points": points, "axis": "step"}


def _goodput(views: Sequence[StepView]) -> list[tuple[str, str]]:
    """Score of the newest step, and of all so far."""
    scores = [
        goodput([(view.report, view.timing) for view in part]) for part in (views[-1:], views)
    ]
    names = ("fresh accepted tokens per s", "fresh accepted tokens per s, all steps")
    return [
        (name, f"{one:,.1f}") for name, one in zip(names, scores, strict=True) if one is not None
    ]


def _goodput_curve(views: Sequence[StepView]) -> list[dict[str, Any]]:
    points = [
        (view.report.step, score)
        for view in views
        if (score := goodput([(view.report, view.timing)])) is not None
    ]
    note = "per second; tokens that are stale, masked, unscored or of zero-variance groups count 0"
    title = "Fresh accepted tokens"
    return [{"title": title, "note": note, "points": points, "axis": "step"}] if points else []


def _monitors(views: Sequence[StepView]) -> list[dict[str, Any]]:
    """Curves of the rewards that are only watched."""
    names = sorted({name for view in views for name in view.report.metrics})
    note = "mean score; it gives no gradient"
    curves = [
        _curve(views, name, f"Monitor: {label}", note)
        for name in names
        if (label := _monitor_of(name))
    ]
    return [curve for curve in curves if curve is not None]


def _monitor_of(metric: str) -> str:
    """Return the monitor whose mean a metric is; '' if it is another metric."""
    label = metric.removeprefix(MONITOR)
    return "" if label == metric or "/" in label else label


def _divergences(views: Sequence[StepView]) -> list[str]:
    """Name every monitor that falls while the trained reward rises."""
    lines = list[str]()
    for name in sorted({name for view in views for name in view.report.metrics}):
        both = [
            (one["reward/mean"], one[name])
            for one in (view.report.metrics for view in views)
            if name in one and "reward/mean" in one
        ]
        if (label := _monitor_of(name)) and both:
            rewards, scores = zip(*both, strict=True)
            lines.append(divergence(label, rewards, scores))
    return [line for line in lines if line]


def _by_place(newest: StepView) -> list[dict[str, Any]]:
    """Mismatch by the place in a response; nothing if the step does not say it."""
    metrics = newest.report.metrics
    points = [
        (quarter, metrics[name])
        for quarter in range(1, QUARTERS + 1)
        if (name := f"mismatch/k3_quarter_{quarter}") in metrics
    ]
    title, note = "Mismatch at the end of a response", "k3 by quarters of the newest responses"
    return [{"title": title, "note": note, "points": points, "axis": "quarter"}] if points else []


def _parts(views: Sequence[StepView]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(name for view in views for name in _parts_of(view)))
    if not names:
        return []
    rows = [[_parts_of(view).get(name, 0.0) for name in names] for view in views]
    names = [name.replace("_", " ") for name in names]
    note = "seconds of every step; collect has rollouts and rewards"
    return [{"title": "Parts of a step", "note": note, "names": names, "rows": rows, "unit": "s"}]


def _parts_of(view: StepView) -> dict[str, float]:
    return view.timing.parts


def _uses(views: Sequence[StepView]) -> list[dict[str, Any]]:
    """What generated tokens were used for; nothing if no step says it."""
    keys = {use.value.replace("_", " "): f"tokens/{use.value}_share" for use in TokenUse}
    rows = {
        name: [100.0 * view.report.metrics.get(key, 0.0) for view in views]
        for name, key in keys.items()
    }
    names = [name for name, values in rows.items() if any(values)]
    if not names:
        return []
    shares = [[rows[name][place] for name in names] for place in range(len(views))]
    title, note = "Use of generated tokens", "% of the tokens of every step"
    return [{"title": title, "note": note, "names": names, "rows": shares, "unit": "%"}]
