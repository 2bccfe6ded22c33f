"""Compare two evaluations item by item, whoever wrote them.

Reads the folder of an evaluation (samples.parquet), and sample logs of lm-evaluation-harness
(samples_<task>_<date>.jsonl, alone or in a folder of one run a task). That harness reports two
models with a standard error each; the paired bootstrap and the sign test over items here tell
smaller differences. Items are paired by the content of their document; whether a higher score is a
better one is read from results_<date>.json beside a log, or known of the metric, or not said.

Differs: of a perplexity that harness logs the log-likelihood and the length of each document, and
reports that of the whole corpus; here each document has one, so that documents are paired.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from data_schemas.arrow import parse_rows
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.algorithms.intervals import paired_difference, sign_test
from tasks.algorithms.suites import per_problem
from tasks.errors import DataError
from tasks.store.interface import store_at

# "model/samples_gsm8k_2026-01-01T00-00-00.000001.jsonl".
_LOG = re.compile(r"(?:.*/)?samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[^/]*)\.jsonl")
_SHARES = frozenset({"acc", "acc_norm", "acc_mutual_info", "acc_bytes", "exact_match", "f1"})
"""Metrics of which a higher score is better and a mean is a share (registry of lm-eval 0.4)."""
_LOWER_IS_BETTER = frozenset(
    {"perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "brier_score"}
)
"""As above: a lower score is better."""
_OF_LENGTH = _LOWER_IS_BETTER - {"brier_score"}
"""Metrics that are logged as a pair of log-likelihood in nats and length."""
_NO_METRICS = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter")
"""Keys of a sample before lm-eval 0.4.3, which did not list its metrics; all others are metrics."""
_MOST_NATS = 700
"""Above, a perplexity is no float."""
Series = tuple[str, str]
"""Task and metric."""


@dataclass(slots=True)
class ScoreLog:
    """One side."""

    items: dict[Series, dict[str, float]] = field(default_factory=dict)
    """Series -> item -> score."""
    higher_is_better: dict[Series, bool] = field(default_factory=dict)
    """Series -> direction, where the harness wrote it down."""
    targets: dict[tuple[str, str], str] = field(default_factory=dict)
    """Task and item -> hash of what was right, where the harness wrote it down."""
    unread: set[Series] = field(default_factory=set)
    """Metrics of which an item has no score: of pairs of labels there is one for the whole task."""


@dataclass(frozen=True, slots=True)
class PairedScore:
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
    higher: int
    """Items on which the left side scores higher."""
    lower: int
    higher_is_better: bool | None
    """None: nobody says which direction is the better one."""
    p_value: float
    """P-value of the sign test: how likely at least so uneven a split is if the sides are equally
    good."""


def read_scores(uri: str) -> ScoreLog:
    """Read one side.

    Raises:
        DataError: nothing of that kind is there, a task has two runs, or a line is malformed.
    """
    place = store_at(uri)
    scores = ScoreLog()
    if uri.endswith(".jsonl"):
        folder, _, name = uri.rpartition("/")
        _read_log(scores, _task_of(name), place.read_bytes(), uri)
        if (results := _results_of(name)) and results in (store := store_at(folder)).list_files():
            _read_directions(scores, store.read_bytes(results), f"{folder}/{results}")
        return scores
    names = place.list_files()
    if SAMPLES_FILE in names:
        table = pq.read_table(pa.BufferReader(place.read_bytes(SAMPLES_FILE)))
        return _read_samples(parse_rows(table.to_pylist(), SampleResult, where=uri))
    logs = sorted(name for name in names if _LOG.fullmatch(name))
    if not logs:
        raise DataError(f"{uri} has neither {SAMPLES_FILE} nor samples_<task>_<date>.jsonl")
    _check_one_run(uri, logs)
    for name in logs:
        _read_log(scores, _task_of(name), place.read_bytes(name), name)
    for name in sorted({_results_of(name) for name in logs} & names.keys()):
        _read_directions(scores, place.read_bytes(name), name)
    return scores


def compare_scores(left: ScoreLog, right: ScoreLog) -> list[PairedScore]:
    """Pair the items of every task and metric that both sides have.

    Raises:
        DataError: there is none, or the sides do not agree on which direction is better, or on what
            is right.
    """
    paired = []
    for series in sorted(left.items.keys() & right.items.keys()):
        ours, theirs = left.items[series], right.items[series]
        shared = sorted(ours.keys() & theirs.keys())
        if not shared:
            continue
        _check_same_targets(series[0], shared, left, right)
        values = [ours[item] for item in shared], [theirs[item] for item in shared]
        interval = paired_difference(*values, seed=0)
        higher = sum(a > b for a, b in zip(*values, strict=True))
        lower = sum(a < b for a, b in zip(*values, strict=True))
        paired.append(
            PairedScore(
                *series,
                items=len(shared),
                unpaired=len(ours.keys() ^ theirs.keys()),
                left=sum(values[0]) / len(shared),
                right=sum(values[1]) / len(shared),
                difference=interval.mean,
                low=interval.low,
                high=interval.high,
                higher=higher,
                lower=lower,
                higher_is_better=_direction(series, left, right),
                p_value=sign_test(higher, lower),
            )
        )
    if not paired:
        raise DataError(
            f"no item is scored on both sides: left has {_tasks(left)}, right {_tasks(right)}"
            f"{_whole_only(left.unread & right.unread)}"
        )
    return paired


def as_json(paired: list[PairedScore]) -> bytes:
    return json.dumps([asdict(one) for one in paired], indent=2).encode() + b"\n"


def as_table(paired: list[PairedScore]) -> Table:
    """Lay the comparisons out for a terminal.

    Shares are in percent and percentage points, other scores as they are; higher and lower count
    the items on which the left side scores so; unpaired are those that only one side has scored.
    """
    table = Table(title="Left minus right, paired by item")
    for name in ("task", "metric"):
        table.add_column(name, overflow="fold")
    for name in (
        "items",
        "unpaired",
        "left",
        "right",
        "difference",
        "95 % interval",
        "higher",
        "lower",
    ):
        table.add_column(name, justify="right")
    table.add_column("better is")
    table.add_column("p", justify="right")
    for one in paired:
        is_share = _name_of(one.metric) in _SHARES and one.higher_is_better
        scale, form, unit = (100, ".1f", " %") if is_share else (1, ".4g", "")
        difference = f"{scale * one.difference:+{form}}"
        table.add_row(
            *(one.task, one.metric, str(one.items), str(one.unpaired)),
            *(f"{scale * mean:{form}}{unit}" for mean in (one.left, one.right)),
            difference,
            f"{scale * one.low:+{form}} to {scale * one.high:+{form}}",
            *(str(one.higher), str(one.lower), _DIRECTIONS[one.higher_is_better]),
            f"{one.p_value:.2g}",
        )
    return table


_DIRECTIONS = {True: "higher", False: "lower", None: "not said"}


def _direction(series: Series, left: ScoreLog, right: ScoreLog) -> bool | None:
    """Say whether a higher score is better: as the harness wrote, or by the metric's name.

    Raises:
        DataError: the sides contradict each other.
    """
    stated = {side.higher_is_better.get(series) for side in (left, right)} - {None}
    if len(stated) > 1:
        raise DataError(f"{series[0]} ({series[1]}): higher is better on one side only")
    if stated:
        return stated.pop()
    name = _name_of(series[1])
    return True if name in _SHARES else False if name in _LOWER_IS_BETTER else None


def _check_same_targets(task: str, shared: list[str], left: ScoreLog, right: ScoreLog) -> None:
    """Refuse documents of which something else was right on the other side.

    Raises:
        DataError: says how many.
    """
    pairs = [(left.targets.get((task, item)), right.targets.get((task, item))) for item in shared]
    if others := sum(a is not None and b is not None and a != b for a, b in pairs):
        raise DataError(
            f"{task}: {others:,} of {len(shared):,} shared documents have another target on the "
            "other side. Evaluate both with one version of the task"
        )


def _name_of(metric: str) -> str:
    """Return a metric without its filter: exact_match of 'exact_match,strict-match'."""
    return metric.partition(",")[0]


def _check_one_run(uri: str, logs: list[str]) -> None:
    """Refuse two runs in one folder: a mixture of both would be a model that never was.

    Raises:
        DataError: names two files.
    """
    first: dict[str, str] = {}
    for name in logs:
        other = first.setdefault(_task_of(name), name)
        if other != name:
            raise DataError(
                f"{uri} has two runs of {_task_of(name)}: {other} and {name}. Name one of the files"
            )
    folders = sorted({name.rpartition("/")[0] for name in logs})
    if len(folders) > 1:
        raise DataError(
            f"{uri} has logs of {folders[0] or '.'} and {folders[1]}, which may be two models. "
            "Name one of the folders"
        )


def _read_samples(samples: list[SampleResult]) -> ScoreLog:
    scores = ScoreLog()
    for source in {sample.source for sample in samples}:
        problems = per_problem(sample for sample in samples if sample.source == source)
        scores.items[source, "acc"] = {
            problem.problem_id: problem.accuracy for problem in problems if problem.decided
        }
    return scores


def _read_log(scores: ScoreLog, task: str, payload: bytes, where: str) -> None:
    """Read a sample log: every numeric metric of every filter.

    Equal documents of one log are told apart by their order.

    Raises:
        DataError: a line is no sample, its document is not named, or a score is no number.
    """
    copies: Counter[tuple[Series, str]] = Counter()
    for number, line in enumerate(payload.splitlines(), start=1):
        if not line.strip():
            continue
        at = f"{where}, line {number}"
        try:
            row = cast("Mapping[str, object]", json.loads(line))
            _ = row["doc_id"]
            item = _document(row, at)
            metrics = cast("list[str]", row.get("metrics") or [*row.keys() - _NO_METRICS])
            values = {name: row[name] for name in metrics}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{at} is no sample of lm-eval: {error!r}") from error
        for name, written in values.items():
            # A score that JSON has no type for, such as numpy.float32, is written as its text.
            is_text = isinstance(written, str) and "metrics" in row
            value = _number(written) if is_text else _of_length(name, written)
            if not isinstance(value, bool | int | float):
                scores.unread.add((task, name))
                continue
            if not math.isfinite(value):
                raise DataError(
                    f"{at}: {name} is {value}, which is no score. Evaluate it again, or remove "
                    f"{name} from the log"
                )
            metric = f"{name},{row.get('filter', 'none')}".removesuffix(",none")
            copies[(task, metric), item] += 1
            key = f"{item}/{copies[(task, metric), item]}"
            scores.items.setdefault((task, metric), {})[key] = float(value)
            if target := row.get("target_hash"):
                scores.targets[task, key] = str(target)


def _of_length(metric: str, written: object) -> object:
    """Return the perplexity of a document, or its bits per byte; what is logged otherwise as it is.

    Of the last word of a text (lambada) `perplexity` is its log-likelihood alone.
    """
    match written if metric in _OF_LENGTH else None:
        case [int() | float() as loglikelihood, int() | float() as length] if length > 0:
            nats = -loglikelihood / length
        case int() | float() as loglikelihood if metric == "perplexity" and loglikelihood <= 0:
            nats = -loglikelihood
        case _:
            return written
    if metric == "bits_per_byte":
        return nats / math.log(2)
    return math.exp(nats) if nats < _MOST_NATS else math.inf


def _number(text: object) -> float | None:
    """Return the number that a text writes, True or False as 1 or 0; None if it writes none."""
    if text in ("True", "False"):
        return float(text == "True")
    try:
        return float(str(text))
    except ValueError:
        return None


def _document(row: Mapping[str, object], at: str) -> str:
    """Return what identifies a document: the hash of its content, as lm-eval computes it.

    Raises:
        DataError: the log has neither the hash nor the document. A number alone is that of another
            document as soon as a task is changed, filtered or shuffled.
    """
    if row.get("doc_hash"):
        return str(row["doc_hash"])
    if "doc" not in row:
        raise DataError(f"{at} has neither doc_hash nor doc, so that nothing says what was asked")
    text = json.dumps(row["doc"], indent=2, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _read_directions(scores: ScoreLog, payload: bytes, where: str) -> None:
    """Read from the results of a run which of its metrics are better when they are higher.

    Raises:
        DataError: the file is no JSON object.
    """
    try:
        results = cast("Mapping[str, Mapping[str, Mapping[str, bool]]]", json.loads(payload))
        stated = results.get("higher_is_better", {})
        for task, metric in scores.items:
            direction = stated.get(task, {}).get(_name_of(metric))
            if isinstance(direction, bool):
                scores.higher_is_better[task, metric] = direction
    except (ValueError, AttributeError) as error:
        raise DataError(f"{where} holds no results of lm-eval: {error!r}") from error


def _results_of(log: str) -> str:
    """Name the file of results that belongs to a log; '' if its name has no date."""
    match = _LOG.fullmatch(log)
    folder = log.rpartition("/")[0]
    return f"{folder}/results_{match['date']}.json".lstrip("/") if match else ""


def _task_of(name: str) -> str:
    match = _LOG.fullmatch(name)
    return match["task"] if match else name.rpartition("/")[2].removesuffix(".jsonl")


def _tasks(scores: ScoreLog) -> str:
    return ", ".join(f"{task} ({metric})" for task, metric in sorted(scores.items)) or "nothing"


def _whole_only(metrics: Collection[Series]) -> str:
    """Name the metrics that have no score of an item; '' if there are none."""
    names = ", ".join(f"{task} ({metric})" for task, metric in sorted(metrics))
    return f"; {names}: no score of each item, only one of the whole task" if names else ""
