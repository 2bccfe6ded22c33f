"""How close the schedule of rollouts comes to its lower bound, on recorded lengths of responses.

    python -m tasks.benchmarks.scheduling lengths.parquet --column out_words --prompt id

A step draws prompts, each with a group of responses, from a table of lengths (CSV, JSONL or
Parquet). Its requests are dealt to replicas by the function that the rollout engines use, and each
replica's slots take responses in the order of its requests. The makespan is that of the slowest
replica, in tokens of its slots; the lower bound is that of any schedule on all slots together:
max(total / slots, longest response).

A prompt's record is the mean length of an earlier group of responses to it. A table without a
prompt column has one response per prompt and no records: there, the order matters only if lengths
were known.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tasks.algorithms.scheduling import makespan
from tasks.engines.protocols import Request
from tasks.engines.team.rollout import spread_requests
from tasks.errors import DataError
from tasks.platform.command_line import positive, run
from tasks.rl.rollouts.schedule import order_requests

_READERS: Mapping[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": pd.read_csv,
    ".jsonl": lambda path: pd.read_json(path, lines=True),
    ".parquet": pd.read_parquet,
}


class Group(NamedTuple):
    """Responses of one prompt in a step."""

    lengths: NDArray[np.float64]
    record: float | None
    """Mean length of an earlier group; None without one."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Where responses are generated."""

    replicas: int
    each: int
    """Responses that a replica generates at once."""


def read_lengths(path: Path, column: str, prompt: str) -> list[NDArray[np.float64]]:
    """Read the lengths of all responses, by prompt; without a prompt column one list of all.

    Raises:
        DataError: the file cannot be read, lacks a column, or has lengths below 0 or no number.
    """
    if path.suffix not in _READERS:
        raise DataError(f"{path}: its name must end in one of {', '.join(_READERS)}")
    try:
        table = _READERS[path.suffix](path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    for name in filter(None, (column, prompt)):
        if name not in table.columns:
            raise DataError(f"{path} has no column {name!r}, but {', '.join(table.columns)}")
    try:
        lengths = np.array(table[column].tolist(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: column {column!r} has values that are no length") from error
    if not np.isfinite(lengths).all() or (lengths < 0).any():
        raise DataError(f"{path}: column {column!r} has values that are no length")
    lengths = np.maximum(lengths, 1.0)
    if not prompt:
        return [lengths]
    names = np.array([str(name) for name in table[prompt].tolist()])
    order = np.argsort(names, kind="stable")
    _, first = np.unique(names[order], return_index=True)
    return np.split(lengths[order], first[1:])


def draw_step(
    by_prompt: Sequence[NDArray[np.float64]],
    num_prompts: int,
    group_size: int,
    draws: np.random.Generator,
) -> list[Group]:
    """Draw the groups of a step, and for each the earlier group of its record.

    A prompt with fewer than two groups of lengths is not drawn. Of a table without prompts every
    length is a prompt of its own, without a record.

    Raises:
        DataError: no prompt has enough lengths.
    """
    if len(by_prompt) == 1:
        chosen = draws.choice(by_prompt[0], num_prompts * group_size)
        return [Group(np.array([length]), None) for length in chosen]
    enough = [lengths for lengths in by_prompt if len(lengths) >= 2 * group_size]
    if not enough:
        raise DataError(f"no prompt has {2 * group_size} lengths, a group and an earlier one")
    groups = []
    for place in draws.integers(0, len(enough), num_prompts):
        lengths = enough[place]
        both = lengths[draws.permutation(len(lengths))[: 2 * group_size]]
        groups.append(Group(both[:group_size], float(both[group_size:].mean())))
    return groups


def overheads(groups: Sequence[Group], slots: Slots) -> dict[str, float]:
    """Makespan over the lower bound by policy; 1 is perfect.

    `record` is what runs: the longest expected first, to the replica with the least expected work.
    `known` is the same with the true mean lengths. `as drawn` deals prompts in turn.
    """
    total = sum(group.lengths.sum() for group in groups)
    longest = max(group.lengths.max() for group in groups)
    bound = max(total / (slots.replicas * slots.each), longest)
    drawn = [range(first, len(groups), slots.replicas) for first in range(slots.replicas)]
    found = {"as drawn": _slowest(groups, drawn, slots) / bound}
    if all(group.record is not None for group in groups):
        expected = [group.record or 0.0 for group in groups]
        found["record"] = _slowest(groups, _dealt(groups, expected, slots), slots) / bound
    expected = [float(group.lengths.mean()) for group in groups]
    found["known"] = _slowest(groups, _dealt(groups, expected, slots), slots) / bound
    return found


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


def table_of(rows: Mapping[Slots, Mapping[str, Sequence[float]]]) -> Table:
    """Build the table: median and 90th percentile over steps, by layout and policy."""
    table = Table(title="makespan / lower bound: median (90th percentile)", box=None)
    table.title_justify = "left"
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    for head in ("replicas", "slots of each", *names):
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
        prog="python -m tasks.benchmarks.scheduling",
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
    options = parser.parse_args(arguments)
    by_prompt = read_lengths(options.lengths, options.column, options.prompt)
    rows: dict[Slots, dict[str, list[float]]] = {}
    for replicas in options.replicas:
        slots, draws = Slots(replicas, options.slots), np.random.default_rng(0)
        for _ in range(options.steps):
            groups = draw_step(by_prompt, options.prompts, options.group, draws)
            for name, value in overheads(groups, slots).items():
                rows.setdefault(slots, {}).setdefault(name, []).append(value)
    Console(highlight=False).print(table_of(rows))


if __name__ == "__main__":
    run(main)
