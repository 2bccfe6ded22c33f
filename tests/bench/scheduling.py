"""How close the schedule of rollouts comes to its lower bound, on recorded lengths of responses.

    python -m tests.bench.scheduling lengths.parquet --column out_words --prompt id

A step draws prompts, each with a group of responses, from a table of lengths (CSV, JSONL or
Parquet). Its requests are dealt to replicas by the function that the rollout engines use, and each
replica's slots take responses in the order of its requests. The makespan is that of the slowest
replica, in tokens of its slots; the lower bound is that of any schedule on all slots together:
max(total / slots, longest response).

A prompt's record is the mean length of earlier responses to it (`--earlier`). What a better
prediction would be worth is in the second table: by the true mean of every group, times log-normal
errors, which have no outliers. A table without a
prompt column has one response per prompt and no records: there, the order matters only if lengths
were known.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tasks.algorithms.scheduling import longest_first, makespan
from tasks.capacity.simulation.lengths import Group, draw_step, read_lengths
from tasks.engines.protocols import Request
from tasks.engines.team.rollout import spread_requests
from tasks.platform.command_line import positive, run
from tasks.rl.schedule import order_requests

ERRORS = (0.1, 0.15, 0.2)
"""Errors of predicted lengths: standard deviations of their logarithm."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Where responses are generated."""

    replicas: int
    each: int
    """Responses that a replica generates at once."""


def overheads(groups: Sequence[Group], slots: Slots) -> dict[str, float]:
    """Makespan over the lower bound by policy; 1 is perfect.

    `record` is what dedicated engines do: the longest expected first, to the replica with the least
    expected work. `known` is the same with the true mean lengths. `as drawn` deals prompts in turn.
    `shared queue` is what colocated engines do, apart from their rounds: in the record's order too,
    but a slot that is free takes the next response of all.
    """
    total = sum(group.lengths.sum() for group in groups)
    longest = max(group.lengths.max() for group in groups)
    bound = max(total / (slots.replicas * slots.each), longest)
    drawn = [range(first, len(groups), slots.replicas) for first in range(slots.replicas)]
    found = {"as drawn": _slowest(groups, drawn, slots) / bound}
    if all(group.record is not None for group in groups):
        expected = [group.record or 0.0 for group in groups]
        found["record"] = _slowest(groups, _dealt(groups, expected, slots), slots) / bound
        order = [groups[place] for place in longest_first(expected)]
        lengths = np.concatenate([group.lengths for group in order]).tolist()
        whole = makespan(lengths, range(len(lengths)), slots.replicas * slots.each)
        found["shared queue"] = whole.tokens / bound
    expected = [float(group.lengths.mean()) for group in groups]
    found["known"] = _slowest(groups, _dealt(groups, expected, slots), slots) / bound
    return found


def predicted(groups: Sequence[Group], error: float, draws: np.random.Generator) -> Sequence[Group]:
    """Replace records by the true means with errors."""
    wrong = np.exp(draws.normal(0.0, error, len(groups)))
    return [
        Group(group.lengths, float(group.lengths.mean() * factor))
        for group, factor in zip(groups, wrong, strict=True)
    ]


def record_error(groups: Sequence[Group]) -> float:
    """Return the standard deviation of the logarithm of records over true means."""
    return float(np.std([np.log((group.record or 1.0) / group.lengths.mean()) for group in groups]))


def _dealt(groups: Sequence[Group], expected: Sequence[float], slots: Slots) -> list[list[int]]:
    """Order and deal requests as the engines do; places of the groups of every replica."""
    empty = np.empty(0, np.int32)
    requests = [
        Request(str(place), empty, num_samples=len(group.lengths))
        for place, group in enumerate(groups)
    ]
    parts = spread_requests(order_requests(requests, expected), slots.replicas)
    return [[int(request.problem_id) for request in part] for part in parts]


def _slowest(groups: Sequence[Group], parts: Sequence[Sequence[int]], slots: Slots) -> float:
    """Makespan of the slowest replica."""
    found = []
    for part in parts:
        lengths = [length for place in part for length in groups[place].lengths.tolist()]
        found.append(makespan(lengths, range(len(lengths)), slots.each).tokens if lengths else 0.0)
    return max(found)


def table_of(rows: Mapping[Slots, Mapping[str, Sequence[float]]], what: str) -> Table:
    """Build a table: median and 90th percentile over steps, by layout and what is compared."""
    table = Table(title=f"makespan / bound {what}: median (90 %)", box=None)
    table.title_justify = "left"
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    for head in ("replicas", "slots", *names):
        table.add_column(head, justify="right")
    for slots, row in rows.items():
        cells = [
            f"{np.median(row[name]):.3f} ({np.quantile(row[name], 0.9):.3f})" for name in names
        ]
        table.add_row(str(slots.replicas), str(slots.each), *cells)
    return table


def main(arguments: Sequence[str]) -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.scheduling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("lengths", type=Path, help="a table: .csv, .jsonl or .parquet")
    parser.add_argument("--column", required=True, help="column of lengths")
    parser.add_argument("--prompt", default="", help="column that names the prompt")
    parser.add_argument("--prompts", type=positive, default=512, help="of a step")
    parser.add_argument("--group", type=positive, default=8, help="responses of a prompt")
    parser.add_argument("--replicas", type=positive, nargs="+", default=[1, 8, 32])
    parser.add_argument("--slots", type=positive, default=16, help="of each replica")
    parser.add_argument("--steps", type=positive, default=50)
    parser.add_argument("--earlier", type=positive, help="responses of a record; like --group")
    options = parser.parse_args(arguments)
    by_prompt = read_lengths(options.lengths, options.column, options.prompt)
    rows: dict[Slots, dict[str, list[float]]] = {}
    by_error: dict[Slots, dict[str, list[float]]] = {}
    errors: list[float] = []
    for replicas in options.replicas:
        slots, draws = Slots(replicas, options.slots), np.random.default_rng(0)
        for _ in range(options.steps):
            groups = draw_step(
                by_prompt, options.prompts, options.group, draws, options.earlier or 0
            )
            found = overheads(groups, slots)
            if "record" in found:
                errors.append(record_error(groups))
                noise = np.random.default_rng(len(errors))
                for error in ERRORS:
                    value = overheads(predicted(groups, error, noise), slots)["record"]
                    by_error.setdefault(slots, {}).setdefault(f"{error:.0%}", []).append(value)
            for name, value in found.items():
                rows.setdefault(slots, {}).setdefault(name, []).append(value)
    console = Console(highlight=False)
    console.print(table_of(rows, "by policy"))
    if errors:
        console.print(table_of(by_error, "by error"))
        console.print(f"error of the records: {np.median(errors):.0%}")


if __name__ == "__main__":
    run(main)
