"""Copy files out of the inbox, and count what in their curated rows is fresh.

`take_in` writes into `out`: the files as they came (`inbox/`), raw_files.json as curation reads
it, and intake.json. The copies are the raw files of the lineage chain: whatever happens to the
inbox later, they stay. Curation checks their rows.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from data_schemas.arrow import read_table
from data_schemas.artifacts import DatasetRef
from data_schemas.intake import (
    CurationCounts,
    FileStatus,
    InboxFile,
    Intake,
    SignedRuling,
    TakenFile,
)
from data_schemas.mappings import ColumnMapping
from data_schemas.references import is_reference
from data_schemas.rows import OUTSIDE, Problem, QuarantinedItem
from data_schemas.sources import RawFile
from tasks.errors import DataError
from tasks.formats.content import content_keys
from tasks.formats.mapping_files import shipped_mappings
from tasks.platform.progress import progress
from tasks.retraining.processed import content
from tasks.store.files import canonical_json, sha256_file, write_bytes
from tasks.store.interface import store_at

logger = logging.getLogger(__name__)

_STARTS_ENVIRONMENTS = "environments"
"""Adapter whose rows name the environment that is imported."""
ADAPTER = "prompt_jsonl"
"""Adapter of files that are not below a folder `adapter=NAME`."""
_ADAPTER_FOLDER = "adapter="
RAW_FILES = "raw_files.json"
REPORT = "intake.json"
PROBLEMS = "problems.parquet"
QUARANTINE = "quarantine.parquet"
CURATION_REPORT = "report.json"


def take_in(
    inbox: str,
    files: Sequence[InboxFile],
    unread: Mapping[str, str],
    out: Path,
    rulings: Mapping[str, SignedRuling] = MappingProxyType({}),
) -> tuple[Intake, list[InboxFile], list[InboxFile]]:
    """Copy files.

    Args:
        inbox: for the report.
        files: from `processed.select`.
        unread: of the listing; what vanishes or changes meanwhile is added to it.
        out: empty folder.
        rulings: what people decided, by what a file says.

    Returns:
        The report, the files that were copied, and those that somebody rejected.

    Raises:
        EngineError: S3 does not answer.
    """
    (out / "inbox").mkdir()
    copies: list[TakenFile] = []
    copied: list[InboxFile] = []
    rejected: list[InboxFile] = []
    missed = dict(unread)
    for number, file in enumerate(progress(files, "new files", len(files)), start=1):
        target = out / "inbox" / f"{number:04d}-{PurePosixPath(file.key).name}"
        if reason := _names_code(file) or _copy(file, target):
            missed[file.key] = reason
            target.unlink(missing_ok=True)
            continue
        sha256 = sha256_file(target)
        copy = file.model_copy(update={"sha256": sha256})
        ruled = rulings.get(content(copy))
        if ruled and ruled.ruling.status is FileStatus.REJECTED:
            rejected.append(copy)
            target.unlink()
            logger.warning("%s was rejected by %s and is not read", file.key, ruled.ruling.by)
            continue
        target = target.rename(_place_of(target, sha256))
        copied.append(copy.model_copy(update={"approved_by": ruled.ruling.by if ruled else ""}))
        mapping = mapping_of_file(file)
        copies.append(
            TakenFile(
                uri=file.uri,
                adapter=mapping.name if mapping else adapter_of(file.key),
                copy_name=target.relative_to(out).as_posix(),
                sha256=sha256,
                bytes=target.stat().st_size,
                refusals=file.refusals,
            )
        )
    raw = [
        RawFile(
            adapter=file.adapter,
            uri=file.copy_name,
            sha256=file.sha256,
            bytes=file.bytes,
            limit=0,
            source=0,
            mapping=mapping_of_file(original),
        ).model_dump(mode="json", exclude_none=True)
        for file, original in zip(copies, copied, strict=True)
    ]
    report = Intake(inbox=inbox, files=tuple(copies), left=missed)
    write_bytes(out / RAW_FILES, canonical_json(raw))
    write_bytes(out / REPORT, report.model_dump_json(indent=2).encode() + b"\n")
    for key, reason in missed.items():
        logger.warning("%s is left in the inbox: %s", key, reason)
    return report, copied, rejected


def approvals(files: Iterable[InboxFile], rulings: Mapping[str, SignedRuling]) -> list[DatasetRef]:
    """List the records of the approvals of these files."""
    records = [rulings[content(file)].record for file in files if file.approved_by]
    return list(dict.fromkeys(records))


def adapter_of(key: str) -> str:
    """Name curation's adapter for a file: that of a folder `adapter=NAME` on its path, if any."""
    for part in PurePosixPath(key).parts[:-1]:
        if part.startswith(_ADAPTER_FOLDER):
            return part.removeprefix(_ADAPTER_FOLDER)
    return ADAPTER


def _names_code(file: InboxFile) -> str:
    """Say that a file of the inbox names code, which only settings may; '' if it does not."""
    mapping = mapping_of_file(file)
    name = mapping.verifier if mapping else adapter_of(file.key)
    is_code = is_reference(name) or name in (OUTSIDE, _STARTS_ENVIRONMENTS)
    return f"it names {name}, and code is named in settings only" if is_code else ""


def _place_of(target: Path, sha256: str) -> Path:
    """Name a copy by its content, so that equally named files of two nights have distinct rows."""
    number, _, name = target.name.partition("-")
    place = target.with_name(f"{sha256[:8]}-{name}")
    return target.with_name(f"{sha256[:8]}-{number}-{name}") if place.exists() else place


def mapping_of_file(file: InboxFile) -> ColumnMapping | None:
    """Return the mapping that reads a file: that beside it, or one of the project by name."""
    return file.mapping or shipped_mappings().get(adapter_of(file.key))


def count(
    curated: Path, problems: Sequence[Problem], known_keys: AbstractSet[str]
) -> CurationCounts:
    """Count what curation made of the files.

    Args:
        curated: folder of the curated set.
        problems: its problems, but for those of files that people have to look at.
        known_keys: `content_keys` of what the released model was trained and evaluated on.
    """
    refused = Counter(row.reason for row in read_table(curated / QUARANTINE, QuarantinedItem))
    totals = json.loads((curated / CURATION_REPORT).read_bytes())["totals"]
    return CurationCounts(
        rows=totals["rows"],
        problems=len(problems),
        fresh=len(content_keys(problems) - known_keys),
        refused=dict(sorted(refused.items())),
    )


def _copy(file: InboxFile, target: Path) -> str:
    """Copy a listed file; return why it cannot be used yet, '' if it can."""
    place = store_at(file.uri)
    try:
        place.download_file(target)
    except (DataError, OSError) as error:
        return f"it cannot be read: {error}"
    # An ETag of S3 is no sha256, so that only a file on disk can be compared.
    if place.local_path is not None and sha256_file(target) != file.fingerprint:
        return "it changed while it was copied"
    return ""
