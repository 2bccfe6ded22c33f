"""The simulated step as a table on the screen and as one HTML page without external resources."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from rich.table import Table

from tasks.capacity.budget_table import describe_fit, format_bytes
from tasks.capacity.memory import FIXED_BYTES
from tasks.capacity.plan import Plan
from tasks.lab.simulator.rates import Efficiency
from tasks.lab.simulator.steps import PARTS
from tasks.lab.simulator.variants import GPU_HOUR_USD, RUNS, VariantResult
from tasks.platform.page_style import STYLE, fill

COLOURS = {
    "rollout": "#1a7f5a",
    "reward": "#e3bd4f",
    "old_logprobs": "#8cc7ad",
    "update": "#3f7fb5",
    "rank_zero": "#8a6fb0",
    "weight_sync": "#b3372f",
    "commit": "#7d7466",
}
NAMES = {
    "rollout": "rollouts",
    "reward": "rewards",
    "old_logprobs": "old log-probs",
    "update": "update",
    "rank_zero": "rank 0",
    "weight_sync": "weight sync",
    "commit": "commit",
}
TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{ page.title }}</title>
<style>{{ style|safe }}
.lede{overflow-wrap:anywhere}section>.card{margin-top:12px}
.steps{display:grid;grid-template-columns:1fr max-content;gap:3px 14px;font-size:14px}
.track{display:flex;height:16px;grid-column:1/3;margin-bottom:9px;border-radius:3px;
background:var(--plain-soft);overflow:hidden}
.track i{display:block;height:100%}.steps b{font-weight:600}.key i{border-radius:2px}
thead th.n,.scroll tbody th{white-space:normal}.scroll tbody th{min-width:9em}</style>
</head>
<body>
<header><div>
<p class="eyebrow">EachPrompt<span>capacity</span><span>simulated</span></p>
<h1>{{ page.headline }}</h1>
<p class="lede">{{ page.about }}</p>
<dl class="tiles">
{% for tile in page.tiles %}
<div><dt>{{ tile[0] }}</dt><dd>{{ tile[1] }}<small>{{ tile[2] }}</small></dd></div>
{% endfor %}
</dl>
</div></header>
<main>
<section><h2>One step of RL, by policy</h2>
<p class="lede">Rollouts and rewards count only while the trainer waits for them.</p>
<p class="key">{% for name, colour in page.key %}<span><i style="background:{{ colour }}"></i>\
{{ name }}</span>{% endfor %}</p>
<div class="card steps">
{% for bar in page.bars %}
<b>{{ bar.name }}</b><span>{{ bar.seconds }}</span>\
<span class="track" role="img" aria-label="{{ bar.label }}">{% for colour, share in bar.parts %}\
<i style="background:{{ colour }};width:{{ share }}%"></i>{% endfor %}</span>
{% endfor %}
</div></section>
<section><h2>The same in numbers</h2>
<p class="lede">A policy without numbers does not fit its GPUs, for the reason given.</p>
<div class="card scroll"><table><thead><tr><th>policy</th>{% for head in page.heads %}\
<th class="n">{{ head }}</th>{% endfor %}</tr></thead><tbody>
{% for name, cells, reason in page.lines %}
<tr><th>{{ name }}</th>{% if reason %}<td class="why" colspan="{{ page.heads|length }}">\
{{ reason }}</td>{% else %}{% for cell in cells %}<td class="n">{{ cell }}</td>{% endfor %}\
{% endif %}</tr>
{% endfor %}
</tbody></table></div></section>
<section><h2>Memory of the fullest GPU</h2>
<p class="lede">{{ page.fit }}</p>
<div class="card scroll"><table><thead><tr><th>while</th><th class="n">in use</th></tr></thead>
<tbody>{% for name, size in page.phases %}<tr><th>{{ name }}</th><td class="n">{{ size }}</td></tr>\
{% endfor %}</tbody></table></div></section>
</main>
<footer>{{ page.footer }}</footer>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class _Bar:
    name: str
    seconds: str
    label: str
    parts: tuple[tuple[str, str], ...]
    """Colour and width, in percent of the longest step."""


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    headline: str
    about: str
    tiles: tuple[tuple[str, str, str], ...]
    key: tuple[tuple[str, str], ...]
    bars: tuple[_Bar, ...]
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...], str], ...]
    fit: str
    phases: tuple[tuple[str, str], ...]
    footer: str


HEADS = (
    *(f"{name}, s" for name in NAMES.values()),
    "step, s",
    "rollout GPUs idle",
    "trainer GPUs idle",
    "staleness (most)",
    "tokens/s",
    "USD",
)


def step_table(rows: Sequence[VariantResult]) -> Table:
    """List all policies for the screen; all parts of a step are on the page."""
    table = Table(title="one step of RL, simulated", title_justify="left", title_style="", box=None)
    table.add_column("policy")
    for head in ("step, s", "rollouts, s", "idle", "tokens/s", "USD"):
        table.add_column(head, justify="right")
    for row in rows:
        name, outcome = row.variant.name, row.outcome
        if outcome is None:
            table.add_row(name, "does not fit", style="dim")
            continue
        seconds = f"{outcome.seconds:,.0f}", f"{outcome.parts['rollout']:,.0f}"
        idle = f"{outcome.rollout_idle:.0%}"
        table.add_row(name, *seconds, idle, f"{row.tokens_s:,.0f}", f"{row.usd:,.0f}")
    return table


def render(
    plan: Plan, rows: Sequence[VariantResult], efficiency: Efficiency, lengths: str
) -> bytes:
    """Write the page.

    Args:
        rows: policies of `variants`; at least one fits.
        lengths: where the lengths come from.
    """
    page = _page(plan, rows, efficiency, lengths)
    return fill(TEMPLATE, page=page, style=STYLE).encode()


def _page(plan: Plan, rows: Sequence[VariantResult], efficiency: Efficiency, lengths: str) -> _Page:
    simulations = [row for row in rows if row.outcome]
    longest = max(row.seconds for row in simulations)
    name = "longest first" if plan.layout.dedicated_rollout_gpus else RUNS
    runs = next((row for row in simulations if row.variant.name == name), simulations[0])
    fastest = min(simulations, key=attrgetter("seconds"))
    outcome, budget = runs.outcome, plan.budget()
    assert outcome is not None
    return _Page(
        title=f"capacity of {plan.name}",
        headline=f"A step of {plan.name} takes {outcome.seconds:,.0f} s",
        about=f"{fastest.variant.name.capitalize()} is the fastest policy compared: "
        f"{fastest.seconds:,.0f} s. {plan.title().replace(chr(10), '; ')}. "
        f"{plan.work.sequences:,} responses a step; {lengths}.",
        tiles=(
            ("a step", f"{outcome.seconds:,.0f} s", f"{runs.variant.name}, as it runs"),
            ("tokens per second", f"{runs.tokens_s:,.0f}", "that are trained"),
            ("rollout GPUs idle", f"{outcome.rollout_idle:.0%}", "of a step"),
            ("price of a step", f"${runs.usd:,.0f}", f"at ${GPU_HOUR_USD} per GPU hour"),
        ),
        key=tuple((NAMES[part], COLOURS[part]) for part in PARTS),
        bars=tuple(_bar(row, longest) for row in simulations),
        heads=HEADS,
        lines=tuple((row.variant.name, _cells(row), row.reason) for row in rows),
        fit=f"{describe_fit(budget)[0].upper()}{describe_fit(budget)[1:]}. "
        f"{format_bytes(FIXED_BYTES)} of it are assumed.",
        phases=tuple((name, format_bytes(size)) for name, size in budget.phases.items()),
        footer="Simulated from the shape of the model and the data sheet of an H100, with "
        f"{efficiency.compute:.2f} of its operations and {efficiency.bandwidth:.2f} of its memory "
        "bandwidth, all groups trained, and a commit every "
        f"{plan.commit_every} steps at {efficiency.disk_bytes_s / 1e9:.0f} GB/s of a node that "
        "writes. Nothing here was measured on a GPU.",
    )


def _bar(row: VariantResult, longest: float) -> _Bar:
    outcome = row.outcome
    assert outcome is not None
    return _Bar(
        name=row.variant.name,
        seconds=f"{outcome.seconds:,.0f} s",
        label=", ".join(f"{NAMES[part]} {outcome.parts[part]:,.0f} s" for part in PARTS),
        parts=tuple(
            (COLOURS[part], f"{100 * outcome.parts[part] / longest:.2f}") for part in PARTS
        ),
    )


def _cells(row: VariantResult) -> tuple[str, ...]:
    outcome = row.outcome
    if outcome is None:
        return ("",) * len(HEADS)
    return (
        *(f"{outcome.parts[part]:,.0f}" for part in PARTS),
        f"{outcome.seconds:,.0f}",
        f"{outcome.rollout_idle:.0%}",
        f"{outcome.trainer_idle:.0%}",
        f"{outcome.staleness:.1f} ({outcome.oldest})",
        f"{row.tokens_s:,.0f}",
        f"{row.usd:,.0f}",
    )
