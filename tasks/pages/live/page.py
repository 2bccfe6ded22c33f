"""The page of a running phase of RL, from what its steps recorded."""

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

from jinja2 import Environment, StrictUndefined

from data_schemas.ledger import TokenUse
from tasks.formats.script_data import script_json, visible
from tasks.pages.live.records import Responses, StepView
from tasks.pages.live.template import PAGE

REFRESH_S = 5
INSIDE = ("rollout", "reward")
"""Times within that of `collect`, or beside other parts: they are no parts of a step's sum."""
SLOWEST = 10
CURVES: tuple[tuple[str, str, str], ...] = (
    ("reward/mean", "Reward", "mean score of the responses with a verdict"),
    ("reward/solved_share", "Solved", "share of the responses with a verdict"),
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
) -> str:
    """Build the page.

    Args:
        title: the phase and its execution.
        state: one line under the title.
        views: of all steps so far, at least one.
        responses: of the newest step; None if its snapshot is too large for a page.
        num_steps: of the whole phase; None if its tokens end it.
        running: False for the last page of a phase, which does not load itself again.
    """
    newest = views[-1]
    data = {
        "title": title,
        "state": state,
        "tiles": _tiles(newest, num_steps),
        "curves": [curve for name in CURVES if (curve := _curve(views, *name))],
        "stacks": [_parts(views), *_uses(views)],
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
    return environment.from_string(PAGE).render(title=title, data=text)


def _tiles(newest: StepView, num_steps: int | None) -> list[tuple[str, str]]:
    metrics = newest.report.metrics
    total = sum(_parts_of(newest).values())
    step = newest.report.step
    whole = f" of {num_steps}" if num_steps else ""
    left = (
        [("left at this pace", f"{(num_steps - step) * total / 60:.0f} min")] if num_steps else []
    )
    return [
        ("step", f"{step}{whole}"),
        ("reward", f"{metrics['reward/mean']:.3f}"),
        ("seconds of the step", f"{total:.1f}"),
        *left,
        ("generated tokens", f"{metrics['rollout/generated_tokens']:,.0f}"),
        ("k3", f"{metrics['mismatch/k3']:.1e}"),
    ]


def _curve(views: Sequence[StepView], metric: str, title: str, note: str) -> dict[str, Any] | None:
    points = [
        (view.report.step, view.report.metrics[metric])
        for view in views
        if isfinite(view.report.metrics.get(metric, nan))  # JSON in a browser has no NaN
    ]
    return {"title": title, "note": note, "points": points} if points else None


def _parts(views: Sequence[StepView]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for view in views for name in _parts_of(view)))
    rows = [[_parts_of(view).get(name, 0.0) for name in names] for view in views]
    names = [name.replace("_", " ") for name in names]
    note = "seconds of every step; collect has rollouts and rewards"
    return {"title": "Parts of a step", "note": note, "names": names, "rows": rows, "unit": "s"}


def _parts_of(view: StepView) -> dict[str, float]:
    return {name: took for name, took in view.timing.seconds.items() if name not in INSIDE}


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
