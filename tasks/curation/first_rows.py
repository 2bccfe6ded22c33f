"""Check a mapping on the first rows of a file, before all the others are read."""

from itertools import islice
from pathlib import Path

from data_schemas.rows import Problem, Quarantined
from data_schemas.sources import ColumnMapping
from tasks.curation.adapters.table import read_file
from tasks.errors import SettingsError
from tasks.gym.protocol import THINK_OPEN
from tasks.gym.scoring.canaries import example_answer
from tasks.gym.table import score_batch

FIRST = 20
"""Rows. A table of which none of these can be read is not the one that the mapping is for."""


def check_first_rows(mapping: ColumnMapping, path: Path, where: str) -> None:
    """Read the first rows, and let the verifier read their answers.

    An empty file passes, and so does one with a single row that can be read: what is wrong with the
    others is counted as they are curated.

    Raises:
        SettingsError: no row can be read, or the verifier understands no answer.
    """
    rows = list(islice(read_file(mapping.name, 0, path, mapping), FIRST))
    refused = [row for row in rows if isinstance(row, Quarantined)]
    if rows and len(refused) == len(rows):
        raise SettingsError(
            f"{where}: mapping {mapping.name} reads none of the first {len(rows)} rows of "
            f"{path.name}: {refused[0].reason}, {refused[0].detail}. Correct the mapping."
        )
    problems = [
        item.record
        for row in rows
        if not isinstance(row, Quarantined)
        for item in row
        if isinstance(item.record, Problem)
    ]
    verdicts = score_batch(problems, [THINK_OPEN] * len(problems))
    if problems and all(verdict.abstained for verdict in verdicts):
        raise SettingsError(
            f"{where}: verifier {mapping.verifier} understands no answer of mapping "
            f"{mapping.name}, the first of which is {problems[0].answer}: {verdicts[0].reason}, "
            f"{verdicts[0].detail}. {_example(mapping.verifier)}"
        )


def _example(verifier: str) -> str:
    example = example_answer(verifier)
    return f"It takes, for example, {example}" if example else "Correct the answer."
