"""Compare two evaluations item by item, whoever wrote them.

Reads the folder of an evaluation (samples.parquet), and sample logs of lm-evaluation-harness
(samples_<task>_<date>.jsonl, alone or in a folder). That harness reports two models with a standard
error each; the paired bootstrap and the sign test over items here tell smaller differences.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from data_schemas.arrow import parse_rows
from data_schemas.rows import SampleResult
from tasks.algorithms.intervals import SAMPLES_FILE, paired_difference, per_problem, sign_test
from tasks.errors import DataError
from tasks.store.interface import store_at

_LOG = re.compile(r"(?:.*/)?samples_(?P<task>.+?)_\d{4}-\d\d-\d\dT[^/]*\.jsonl")
Scores = dict[tuple[str, str], dict[str, float]]
"""(task, metric) -> item -> score."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Left minus right on the items that both have."""

    task: str
    metric: str
    items: int
    unpaired: int
    """Items that only one side has; they are left out."""
    left: float
    right: float
    difference: float
    low: float
    high: float
    better: int
    """Items on which the left side scores higher."""
    worse: int
    p_value: float
    """Of the sign test: how likely at least so uneven a split is if neither side is better."""


def read_scores(uri: str) -> Scores:
    """Read one side.

    Raises:
        DataError: nothing of that kind is there, or a line is malformed.
    """
    place = store_at(uri)
    if uri.endswith(".jsonl"):
        return _read_log(_task_of(uri), place.read_bytes(), uri)
    names = place.list_files()
    if SAMPLES_FILE in names:
        table = pq.read_table(pa.BufferReader(place.read_bytes(SAMPLES_FILE)))
        return _read_samples(parse_rows(table.to_pylist(), SampleResult, where=uri))
    logs = sorted(name for name in names if _LOG.fullmatch(name))
    if not logs:
        raise DataError(f"{uri} has neither {SAMPLES_FILE} nor samples_<task>_<date>.jsonl")
    scores: Scores = {}
    for name in logs:
        for series, items in _read_log(_task_of(name), place.read_bytes(name), name).items():
            scores.setdefault(series, {}).update(items)
    return scores


def compare_scores(left: Scores, right: Scores) -> list[Paired]:
    """Pair the items of every task and metric that both sides have.

    Raises:
        DataError: there is none.
    """
    paired = []
    for series in sorted(left.keys() & right.keys()):
        ours, theirs = left[series], right[series]
        shared = sorted(ours.keys() & theirs.keys())
        if not shared:
            continue
        values = [ours[item] for item in shared], [theirs[item] for item in shared]
        interval = paired_difference(*values, seed=0)
        better = sum(a > b for a, b in zip(*values, strict=True))
        worse = sum(a < b for a, b in zip(*values, strict=True))
        paired.append(
            Paired(
                *series,
                items=len(shared),
                unpaired=len(ours.keys() ^ theirs.keys()),
                left=sum(values[0]) / len(shared),
                right=sum(values[1]) / len(shared),
                difference=interval.mean,
                low=interval.low,
                high=interval.high,
                better=better,
                worse=worse,
                p_value=sign_test(better, worse),
            )
        )
    if not paired:
        raise DataError(
            f"no item is scored on both sides: left has {_tasks(left)}, right {_tasks(right)}"
        )
    return paired


def as_json(paired: list[Paired]) -> bytes:
    return json.dumps([asdict(one) for one in paired], indent=2).encode() + b"\n"


def as_table(paired: list[Paired]) -> Table:
    """Lay the comparisons out for a terminal."""
    table = Table(title="Left minus right, paired by item")
    for name in ("task", "metric"):
        table.add_column(name, overflow="fold")
    for name in ("items", "left", "right", "points", "95 % interval", "better", "worse", "p"):
        table.add_column(name, justify="right")
    for one in paired:
        table.add_row(
            *(one.task, one.metric, str(one.items), f"{100 * one.left:.1f} %"),
            *(f"{100 * one.right:.1f} %", f"{100 * one.difference:+.1f}"),
            f"{100 * one.low:+.1f} to {100 * one.high:+.1f}",
            *(str(one.better), str(one.worse), f"{one.p_value:.2g}"),
        )
    return table


def _read_samples(samples: list[SampleResult]) -> Scores:
    scores: Scores = {}
    for source in {sample.source for sample in samples}:
        problems = per_problem(sample for sample in samples if sample.source == source)
        scores[source, "acc"] = {
            problem.problem_id: problem.accuracy for problem in problems if problem.decided
        }
    return scores


def _read_log(task: str, payload: bytes, where: str) -> Scores:
    """Read a sample log: every numeric metric of every filter. Items are paired by document."""
    scores: Scores = {}
    for number, line in enumerate(payload.splitlines(), start=1):
        try:
            row = cast("Mapping[str, object]", json.loads(line))
            item = str(row.get("doc_hash") or row["doc_id"])
            values = {name: row[name] for name in cast("list[str]", row["metrics"])}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{where}, line {number} is no sample of lm-eval: {error!r}") from error
        for name, value in values.items():
            if isinstance(value, bool | int | float):
                metric = f"{name},{row.get('filter', 'none')}".removesuffix(",none")
                scores.setdefault((task, metric), {})[item] = float(value)
    return scores


def _task_of(name: str) -> str:
    match = _LOG.fullmatch(name)
    return match["task"] if match else name.rpartition("/")[2].removesuffix(".jsonl")


def _tasks(scores: Scores) -> str:
    return ", ".join(f"{task} ({metric})" for task, metric in sorted(scores)) or "nothing"
