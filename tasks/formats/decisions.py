"""The file in which people decide about gold answers that models doubt.

`evaluate` and `verify_answers` write a line for each doubtful answer, with a blank `decision`.
People fill in `decision`, `by` and `at`, and for `correct` the `correction`. The file is then a
source of curation with the adapter `decisions`, so its content is part of the chain.
"""

from collections.abc import Iterable
from pathlib import Path

from data_schemas.gold_decisions import Annotation, GoldDecision
from tasks.errors import DataError
from tasks.formats.line_files import read_lines
from tasks.store.files import canonical_json, write_bytes

ADAPTER = "decisions"
"""Name of such a source in the settings."""
FILE = "annotate.jsonl"
"""For people."""


def write_annotations(path: Path, annotations: Iterable[Annotation]) -> None:
    """Write the file, one problem per line."""
    lines = (canonical_json(one.model_dump(mode="json")) + b"\n" for one in annotations)
    write_bytes(path, b"".join(lines))


def read_decisions(paths: Iterable[Path]) -> dict[str, Annotation]:
    """Read what was decided, by problem; lines without a decision are skipped.

    Raises:
        DataError: a line cannot be read, or a problem is decided twice; nothing may be trained
            while it is unclear what was decided.
    """
    decisions: dict[str, Annotation] = {}
    for path in paths:
        for where, one in read_lines(path, Annotation):
            if one.decision is GoldDecision.NONE:
                continue
            if one.problem in decisions:
                raise DataError(
                    f"{where}: {one.problem} is decided twice. Remove one of the lines."
                )
            decisions[one.problem] = one
    return decisions
