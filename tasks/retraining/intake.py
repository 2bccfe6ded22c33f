"""Copy new files out of the inbox, check every row, and list what is fresh.

Written into `out`: the files as they came (`inbox/`), raw_files.json as curation reads
it, quarantine.parquet with every broken row, and intake.json with the counts. The copies
are the raw files of the lineage chain: whatever happens to the inbox later, they stay.
"""

import json
import logging
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from data_schemas.arrow import write_table
from data_schemas.intake import InboxFile, Intake, TakenFile
from data_schemas.prompts import Problem
from data_schemas.quarantine import ItemKind, Outcome, Quarantined
from data_schemas.raw_files import RawFile
from tasks.platform.progress import progress
from tasks.retraining.inbox import fetch
from tasks.rewards.table import VERIFIERS, score_batch
from tasks.store.files import canonical_json, sha256_bytes, sha256_file, write_bytes

logger = logging.getLogger(__name__)

ADAPTER = "prompt_jsonl"
SUFFIX = ".jsonl"
RAW_FILES = "raw_files.json"
QUARANTINE = "quarantine.parquet"
REPORT = "intake.json"


class _BadRow(ValueError):
    """A row is quarantined; arguments are the reason code and the detail."""


def take_in(inbox: str, files: Sequence[InboxFile], known: AbstractSet[str], out: Path) -> Intake:
    """Copy, check and count new files.

    Args:
        inbox: for the report.
        files: from `watermark.new_files`.
        known: `content_keys` of what the released model was trained and examined on.
        out: empty folder.

    Raises:
        SettingsError: a file is gone or may not be read.
        EngineError: S3 does not answer.
    """
    seen = set(known)
    refused: list[Quarantined] = []
    taken: list[TakenFile] = []
    (out / "inbox").mkdir()
    for number, file in enumerate(progress(files, "new files", len(files)), start=1):
        target = out / "inbox" / f"{number:04d}-{Path(file.key).name}"
        fetch(file, target)
        rows, bad = _check_file(file, target)
        keys = [content_key(problem) for problem in rows]
        fresh = len(set(keys) - seen)
        seen.update(keys)
        refused += bad
        taken.append(
            TakenFile(
                uri=file.uri,
                copy_name=target.relative_to(out).as_posix(),
                sha256=sha256_file(target),
                bytes=target.stat().st_size,
                rows=len(rows) + len(bad),
                valid=len(rows),
                fresh=fresh,
            )
        )
    report = Intake(
        inbox=inbox,
        files=tuple(taken),
        rows=sum(file.rows for file in taken),
        valid=sum(file.valid for file in taken),
        fresh=sum(file.fresh for file in taken),
        quarantined=dict(sorted(Counter(row.reason for row in refused).items())),
    )
    raw = [
        RawFile(
            adapter=ADAPTER,
            uri=file.copy_name,
            sha256=file.sha256,
            bytes=file.bytes,
            limit=0,
            source=0,
        ).model_dump()
        for file in taken
        if file.copy_name.endswith(SUFFIX)
    ]
    write_bytes(out / RAW_FILES, canonical_json(raw))
    write_table(out / QUARANTINE, Quarantined, refused)
    write_bytes(out / REPORT, report.model_dump_json(indent=2).encode() + b"\n")
    if refused:
        logger.warning(
            "quarantined %d of %d rows: %s", len(refused), report.rows, report.quarantined
        )
    return report


def content_keys(problems: Iterable[Problem]) -> frozenset[str]:
    """Name what problems ask, so that a prompt seen before is recognised."""
    return frozenset(content_key(problem) for problem in problems)


def content_key(problem: Problem) -> str:
    """Hash the prompt after folding width, case and blanks."""
    folded = unicodedata.normalize("NFKC", problem.prompt_text).casefold()
    return sha256_bytes(" ".join(folded.split()).encode())


def _check_file(file: InboxFile, path: Path) -> tuple[list[Problem], list[Quarantined]]:
    """Split the rows of a file into valid ones and refusals; a foreign file is one bad row."""
    if path.suffix != SUFFIX:
        detail = f"{path.suffix or 'no suffix'}; the inbox takes {SUFFIX} files"
        return [], [_refusal(file, 0, sha256_file(path), "unknown_suffix", detail)]
    rows: list[Problem] = []
    refused: list[Quarantined] = []
    for number, line in _lines(path):
        digest = sha256_bytes(line)
        try:
            rows.append(_problem(line, f"{file.key}-{number}", digest))
        except _BadRow as bad:
            reason, detail = bad.args
            refused.append(_refusal(file, number, digest, reason, detail))
    return rows, refused


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            payload = line.rstrip(b"\r\n")
            if payload.strip():
                yield number, payload


def _problem(line: bytes, key: str, digest: str) -> Problem:
    """Read one row: our Problem's fields; `answer` may be a JSON object, `id` may be missing.

    Where a row came from is not its own claim: `source` and `source_row` are ours.
    """
    fields = _object(line)
    if not isinstance(fields.get("answer", ""), str):
        fields["answer"] = canonical_json(fields["answer"]).decode()
    name = str(fields.get("id", key))
    fields |= {
        "id": name if name.startswith(f"{ADAPTER}/") else f"{ADAPTER}/{name}",
        "source": ADAPTER,
        "source_row": digest,
    }
    try:
        problem = Problem.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "row"
        raise _BadRow("schema", f"{where}: {first['msg']}") from error
    if problem.verifier not in VERIFIERS:
        known = ", ".join(sorted(VERIFIERS))
        raise _BadRow("unknown_verifier", f"verifier: {problem.verifier!r} is not one of {known}")
    # Verifiers look at the gold before they look at the response.
    verdict = score_batch([problem], [""])[0]
    if verdict.abstained:
        raise _BadRow(verdict.reason, verdict.detail)
    return problem


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        canonical_json(value)  # half of a surrogate pair can be escaped, but has no UTF-8
    except UnicodeError as error:
        raise _BadRow("not_utf8", str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _BadRow("not_json", str(error)) from error
    if not isinstance(value, dict):
        raise _BadRow("not_an_object", f"the row is a {type(value).__name__}")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _refusal(file: InboxFile, number: int, digest: str, reason: str, detail: str) -> Quarantined:
    return Quarantined(
        stage="intake",
        outcome=Outcome.QUARANTINED,
        kind=ItemKind.ROW,
        source=ADAPTER,
        key=f"{file.uri}-{number}",
        reason=reason,
        detail=detail,
        source_row=digest,
    )
