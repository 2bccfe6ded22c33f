"""How much of a source's reward is free: the best text that does no task, on its own problems."""

# pyright: basic
# pyarrow ships no types.

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data_schemas.arrow import parse_rows
from data_schemas.reports import EchoScore
from data_schemas.rows import Problem
from tasks.curation.cleaning.verification import Score
from tasks.curation.ingest import GENERATED
from tasks.gym.degenerate import OWN, TEXTS, echo_scores, is_scored, spread, texts_of
from tasks.plugins import is_reference

_LOG = logging.getLogger(__name__)

MUCH = 0.3
"""Share of the reward from which curation says on the screen that it is free."""
_BATCH = 4096
Source = str
Verifier = str
Free = dict[Source, dict[Verifier, EchoScore]]


def measure(problems: Path, score: Score) -> Free:
    """Measure what is free, by source and verifier, on at most 20 problems of each.

    Args:
        problems: table of the problems to train on; more rows than fit in memory are no matter.
        score: scores the texts.

    Raises:
        SettingsError: the verifier of a user's own names something else than texts.
    """
    sample = [problem for problem in _sample(problems) if is_scored(problem)]
    places = {f"{one.source}\n{one.verifier}": (one.source, one.verifier) for one in sample}
    result = echo_scores(
        sample,
        lambda batch, texts: [verdict.score for verdict in score(batch, texts)],
        lambda problem: f"{problem.source}\n{problem.verifier}",
    )
    free: Free = defaultdict(dict)
    for one in result:
        source, verifier = places[one.suite]
        free[source][verifier] = one.model_copy(update={"suite": source})
    _tell(free)
    return free


def _tell(free: Free) -> None:
    """Warn of sources of a user's own: nobody can change what the project itself generates."""
    for source in free.keys() - GENERATED.keys():
        for verifier, one in free[source].items():
            if one.score >= MUCH:
                _LOG.warning(
                    "%s: %.0f %% of the reward of %s is free; it goes to a text that does no task "
                    "(%s). Mix such problems with others, or ask for more",
                    *(source, 100 * one.score, verifier, one.text),
                )
            if is_reference(verifier) and not texts_of(verifier):
                _LOG.warning(
                    "%s: the module of %s names no %s, texts that do not do its task; the %d "
                    "built-in ones alone were tried",
                    *(source, verifier.partition("@")[0], OWN, len(TEXTS)),
                )


def _sample(path: Path) -> Iterator[Problem]:
    """Yield the problems that are measured, evenly spread over each source and verifier."""
    rows: dict[tuple[Source, Verifier], list[int]] = defaultdict(list)
    keys = (
        key
        for batch in _batches(path, ["source", "verifier"])
        for key in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for row, key in enumerate(keys):
        rows[key].append(row)
    numbers = {row for members in rows.values() for row in spread(members)}
    start = 0
    for batch in _batches(path, None):
        here = [row - start for row in sorted(numbers) if start <= row < start + len(batch)]
        start += len(batch)
        records = pa.Table.from_batches([batch]).take(pa.array(here, pa.int64())).to_pylist()
        yield from parse_rows(records, Problem, where=str(path))


def _batches(path: Path, columns: list[str] | None) -> Iterable[pa.RecordBatch]:
    with pq.ParquetFile(path) as table:
        yield from table.iter_batches(batch_size=_BATCH, columns=columns)
