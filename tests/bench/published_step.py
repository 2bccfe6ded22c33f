"""The published step on 256 H100s against the simulator, and the fastest layout of every policy.

python -m tests.bench.published_step
"""

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tasks.capacity.plan import plan_of_preset
from tasks.capacity.simulation.lengths import read_source
from tasks.capacity.simulation.policies import Row
from tasks.capacity.simulation.published import baseline_tokens_s, compare_step, fit
from tasks.capacity.simulation.rates import Efficiency
from tasks.capacity.simulation.search import search
from tasks.capacity.table import describe_layout
from tasks.platform.command_line import run


def main(arguments: Sequence[str]) -> None:
    """Fit two constants, compare and search."""
    argparse.ArgumentParser(
        prog="python -m tests.bench.published_step",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(arguments)
    console, fitted = Console(highlight=False), fit()
    console.print(_comparison(fitted))
    console.print(
        f"\nfitted: {fitted.bandwidth:.3f} of the memory bandwidth, "
        f"{fitted.reward_s:.2f} s of a node per reward\n"
    )
    plan = plan_of_preset("full_scale")
    source = read_source("", "", "", plan.work.response_tokens)
    found: dict[str, Row] = {}
    for row in search(plan, source.draw, fitted, source.mean):
        found.setdefault(row.variant.name, row)
    console.print(_fastest(list(found.values()), baseline_tokens_s(fitted)))
    for row in found.values():
        layout = row.variant.plan.layout
        console.print(
            f"{row.variant.name}: {describe_layout(layout, row.variant.plan.precision)}, "
            f"{layout.rollout_memory:.2f} of each GPU"
        )


def _comparison(fitted: Efficiency) -> Table:
    table = Table(title="published and simulated", title_justify="left", title_style="", box=None)
    table.add_column("")
    for head in ("published", "simulated", "error"):
        table.add_column(head, justify="right")
    for one in compare_step(fitted):
        error = "fitted" if one.fitted else f"{one.error:+.1%}"
        table.add_row(one.name, f"{one.published:.3f}", f"{one.simulated:.3f}", error)
    return table


def _fastest(rows: Sequence[Row], published: float) -> Table:
    """The fastest row of every policy; a step trains more or fewer tokens by the policy."""
    table = Table(title="trained tokens per second", title_justify="left", title_style="", box=None)
    table.add_column("policy")
    heads = ("of the published", "rollouts, s", "trainer, s", "idle", "staleness", "most")
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        outcome = row.outcome
        assert outcome is not None, "the search returns what fits"
        parts = outcome.parts
        table.add_row(
            row.variant.name,
            f"{row.tokens_s / published:.2f}x",
            f"{parts['rollout'] + parts['reward']:,.0f}",
            f"{parts['old_logprobs'] + parts['update']:,.0f}",
            f"{outcome.rollout_idle:.0%}",
            f"{outcome.staleness:.1f}",
            str(outcome.oldest),
        )
    return table


if __name__ == "__main__":
    run(main)
