"""Score a file of JSON lines: one ScoreRow per input line, one verdict per output line, in order.

Lines are appended to OUT.partial in batches; the file is renamed to OUT when it is complete. An
interrupted run resumes after the last batch if OUT.partial belongs to the same input.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError
from tqdm import tqdm

from data_schemas.rollouts import ScoreRow
from tasks.errors import DataError
from tasks.gym.scoring.service import ScoringService

PORTION = 1024
"""Rows that are scored and written together; a group is never split."""
_Numbered = tuple[str, ScoreRow]


def score_file(source: Path, out: Path, scorer: ScoringService) -> dict[str, int]:
    """Score every row of `source`; write id, score, reason and detail of each to `out`.

    Returns:
        How often each reason was given; abstentions carry the prefix `abstained:`.

    Raises:
        DataError: a line is not a ScoreRow, or OUT.partial belongs to another file.
        SettingsError: a row names a verifier that does not exist or needs a judge.
    """
    rows = _read(source)
    partial = out.with_name(f"{out.name}.partial")
    num_scored = _count_done(partial, rows)
    with partial.open("a", encoding="utf-8") as file:
        bar = tqdm(
            total=len(rows), initial=num_scored, desc="score", unit="row", dynamic_ncols=True
        )
        for start, portion in _portions(rows, num_scored):
            problems = [row.problem(start + n) for n, (_, row) in enumerate(portion)]
            verdicts = scorer.score(problems, [row.response for _, row in portion])
            for (digest, row), verdict in zip(portion, verdicts, strict=True):
                line = {"id": row.id, **verdict.model_dump(), "row": digest}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
            bar.update(len(portion))
        bar.close()
    partial.replace(out)
    return _counts(out)


def _read(source: Path) -> list[_Numbered]:
    try:
        lines = source.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"cannot read {source}: {error}") from error
    rows: list[_Numbered] = []
    for place, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = ScoreRow.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "row"
            raise DataError(f"{source}, line {place}: {where}: {first['msg']}") from error
        rows.append((hashlib.sha256(line).hexdigest()[:16], row))
    return rows


def _count_done(partial: Path, rows: list[_Numbered]) -> int:
    """Count the rows that an earlier run has written; an unfinished line is removed."""
    if not partial.exists():
        return 0
    whole, _, _ = partial.read_bytes().rpartition(b"\n")
    lines = [line for line in whole.split(b"\n") if line]
    digests = [json.loads(line)["row"] for line in lines]
    if digests != [digest for digest, _ in rows[: len(digests)]]:
        raise DataError(
            f"{partial} was not written from these rows. Delete it, or set another --out."
        )
    partial.write_bytes(b"".join(line + b"\n" for line in lines))
    return len(lines)


def _portions(rows: list[_Numbered], num_scored: int) -> Iterator[tuple[int, list[_Numbered]]]:
    """Split the rest into batches of whole groups, each with the number of its first row."""
    start, portion = num_scored, list[_Numbered]()
    places = range(num_scored, len(rows))
    for _, group in groupby(places, key=lambda place: rows[place][1].id or str(place)):
        members = [rows[place] for place in group]
        if portion and len(portion) + len(members) > PORTION:
            yield start, portion
            start, portion = start + len(portion), []
        portion += members
    if portion:
        yield start, portion


def _counts(out: Path) -> dict[str, int]:
    verdicts = (json.loads(line) for line in out.read_text(encoding="utf-8").split("\n") if line)
    reasons = Counter(
        f"abstained:{verdict['reason']}" if verdict["score"] is None else verdict["reason"]
        for verdict in verdicts
    )
    return dict(sorted(reasons.items()))
