"""Check the first rows of a source: can they be read, and can their rewards be won?"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from data_schemas.mappings import ColumnMapping
from data_schemas.rows import Outcome, Problem, QuarantinedItem
from data_schemas.suites import Selection
from tasks.curation.adapters.table import adapt
from tasks.curation.cleaning.golds import gold_fault
from tasks.curation.items import Item
from tasks.curation.rows import read_rows
from tasks.errors import EngineError, SettingsError
from tasks.gym.protocol import THINK_OPEN
from tasks.gym.references import (
    Score,
    describe,
    has_solution,
    is_lost,
    likely_cause,
    try_references,
)
from tasks.gym.scoring import canaries
from tasks.gym.table import score_batch
from tasks.plugins import is_reference

FIRST = 20
"""Rows. A table of which none of these can be read is not the one that the mapping is for."""
SEARCHED = 10_000
"""Rows among which the first are looked for that a suite selects: a file may have millions."""
Responses = Mapping[str, Sequence[str]]
"""By the id of a problem: what its row has to imitate."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """What is worth saying of the first rows of a source that can be used; a line each."""

    lost: tuple[str, ...] = ()
    """Rewards that some of its rows cannot win."""
    unchecked: tuple[str, ...] = ()
    """Verifiers of rows that name no answer which has to earn full marks."""


def _is_left_out(row: list[Item] | QuarantinedItem) -> bool:
    return isinstance(row, QuarantinedItem) and row.outcome is Outcome.DROPPED


def check_first_rows(
    name: str,
    mapping: ColumnMapping | None,
    path: Path,
    where: str,
    verifier: str = "",
    select: Mapping[str, Selection] = MappingProxyType({}),
) -> FirstRows:
    """Read the first rows, and let their verifiers score what should earn full marks.

    An empty file passes, and so does a mapping that reads a single row: what is wrong with the
    others is counted as they are curated.

    Args:
        name: of the adapter, if there is no mapping.
        mapping: reads the rows instead of an adapter.
        path: of the file.
        where: the setting that names the source, for messages.
        verifier: scores the problems instead of the one that their rows name.
        select: which rows the suite asks; the first are the first of these.

    Raises:
        SettingsError: no row can be read, a verifier understands no answer, or the reference
            answers of half of a verifier's rows or more earn no full marks.
    """
    reader = mapping.name if mapping else name
    every = adapt(reader, 0, path, islice(read_rows(path), SEARCHED), mapping, select, verifier)
    rows = list(islice((row for row in every if not _is_left_out(row)), FIRST))
    refused = [row for row in rows if isinstance(row, QuarantinedItem)]
    if mapping and rows and len(refused) == len(rows):
        raise SettingsError(
            f"{where}: mapping {mapping.name} reads none of the first {len(rows)} rows of "
            f"{path.name}: {refused[0].reason}, {refused[0].detail}. Correct the mapping."
        )
    items = [item for row in rows if not isinstance(row, QuarantinedItem) for item in row]
    return check_rewards(items, where, score_batch)


def check_rewards(items: Sequence[Item], where: str, score: Score) -> FirstRows:
    """Let verifiers score what should earn full marks; see `check_first_rows`."""
    by_verifier: dict[str, list[Problem]] = defaultdict(list)
    responses: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if item.answers is not None:
            responses[item.answers.id].append(item.response)
        problem = item.record if isinstance(item.record, Problem) else item.answers
        if problem is not None and problem not in by_verifier[problem.verifier]:
            by_verifier[problem.verifier].append(problem)
    results = [
        _check_verifier(verifier, problems, responses, where, score)
        for verifier, problems in by_verifier.items()
    ]
    return FirstRows(
        tuple(line for one in results for line in one.lost),
        tuple(line for one in results for line in one.unchecked),
    )


def _check_verifier(
    verifier: str, problems: Sequence[Problem], responses: Responses, where: str, score: Score
) -> FirstRows:
    source = problems[0].source
    silent = score(problems, [THINK_OPEN] * len(problems))
    faults = [
        (verdict.reason, verdict.detail) if verdict.abstained else gold_fault(problem)
        for problem, verdict in zip(problems, silent, strict=True)
    ]
    readable = [one for one, fault in zip(problems, faults, strict=True) if fault is None]
    if faults[0] and not readable:
        raise SettingsError(
            f"{where}: verifier {verifier} understands no answer of source {source}, the first of "
            f"which is {problems[0].answer}: {', '.join(faults[0])}. {_example(verifier)}"
        )
    if is_reference(verifier):
        try:
            canaries.check(lambda *batch: list(score(*batch)), {verifier})
        except EngineError as error:
            raise SettingsError(f"{where}: {error}") from error
    trials = try_references(readable, [responses.get(one.id, ()) for one in readable], score)
    lost = [trial for trial in trials if is_lost(trial)]
    cause = ""
    if lost:
        share = f"{len(lost)} of the first {len(trials)} rows cannot be won"
        cause = f"{describe(lost[0])}; {share}. Likely cause: {likely_cause(lost[0])}"
    if 2 * len(lost) >= len(trials):
        raise SettingsError(f"{where}: the reward of source {source} cannot be won. {cause}")
    open_rows = sum(
        not (trial.solves or is_lost(trial) or has_solution(trial.problem)) for trial in trials
    )
    unchecked = (
        f"{source}: the reward of {verifier.partition('@')[0]} is unchecked in {open_rows} of the "
        f"first {len(trials)} rows: they name no answer that has to earn full marks."
    )
    return FirstRows((f"{source}: {cause}",) * bool(lost), (unchecked,) * bool(open_rows))


def _example(verifier: str) -> str:
    example = canaries.example_answer(verifier)
    return f"It takes, for example, {example}" if example else "Correct the answer."
