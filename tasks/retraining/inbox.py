"""List an inbox, copy files out of it, and count what in their curated rows is fresh."""

import errno
import fcntl
import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
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
from data_schemas.rl_settings import is_reference
from data_schemas.rows import OUTSIDE, Problem, Quarantined
from data_schemas.sources import SUFFIXES, ColumnMapping, RawFile
from tasks.errors import DataError, SettingsError
from tasks.formats.content import content_keys
from tasks.formats.mapping_files import parse_mapping, shipped_mappings
from tasks.formats.no_data import is_no_data
from tasks.platform.progress import progress
from tasks.retraining.processed import content
from tasks.store.files import canonical_json, sha256_file, write_bytes
from tasks.store.interface import Store, store_at

# List an inbox: a folder on disk or a prefix in S3, and what in it is not ready yet.
#
# A file is not ready while it has the name of a partial upload, is empty, is open for writing on
# this machine, or is a part (`part-00000...`) in a folder without Hadoop's and Spark's mark
# `_SUCCESS`. What `no_data` names, such as checksums and hidden files, is no data.
#
# A file `_mapping.yaml` (or `.yml`, `.json`) says how the rows of all files of its folder and
# below are read; the nearest one counts. It is part of what identifies a file: with a corrected
# mapping a file is new.

_PARTIAL = (".tmp", ".part", ".partial", ".crdownload", ".filepart", "~")
"""Names that tools give to what they are still writing."""
_SUCCESS = "_SUCCESS"
_MAPPINGS = tuple(f"_mapping{suffix}" for suffix in SUFFIXES)
Mappings = Mapping[PurePosixPath, ColumnMapping | str]
"""Folder -> its mapping, or why it cannot be used."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The content of an inbox."""

    files: tuple[InboxFile, ...]
    """By key."""
    reasons: Mapping[str, str]
    """Key -> why the file is left for a later run."""


def list_files(inbox: str) -> Listing:
    """List all files below the inbox.

    Raises:
        SettingsError: there is no such folder or bucket, or it may not be read.
        EngineError: S3 does not answer.
    """
    place = store_at(inbox)
    folder = place.local_path
    if folder is not None:
        folder = folder.expanduser().resolve()
        if not folder.is_dir():
            raise SettingsError(
                f"inbox {folder} is not a folder. Create it or set inbox to another."
            )
        place = store_at(str(folder))
    try:
        sizes = place.list_files()
        names = {name for name in sizes if not name.endswith("/")}  # S3's marks of folders
        mappings = {
            PurePosixPath(name).parent: _read_mapping(place, name)
            for name in sorted(names)
            if PurePosixPath(name).name in _MAPPINGS
        }
        reasons = {
            name: reason
            for name in sorted(filter(_is_data, names))
            if (reason := _not_ready(name, sizes, folder) or _unmapped(name, mappings))
        }
        ready = sorted(name for name in names if _is_data(name) and name not in reasons)
        fingerprints = place.fingerprints(ready)
    except DataError as error:
        raise SettingsError(
            f"{inbox} is not there: {error}. Set inbox to a folder or s3://bucket/prefix."
        ) from error
    files = tuple(
        InboxFile(
            key=name,
            uri=f"{place.uri}/{name}",
            bytes=sizes[name],
            fingerprint=fingerprints[name],
            mapping=_nearest(name, mappings),
        )
        for name in ready
        if name in fingerprints
    )
    return Listing(files, reasons)


def _read_mapping(place: Store, name: str) -> ColumnMapping | str:
    """Read a mapping file, or return why it cannot be used."""
    try:
        return parse_mapping(place.read_bytes(name), name)
    except (SettingsError, DataError) as error:
        return str(error)


def _nearest(key: str, mappings: Mappings) -> ColumnMapping | None:
    mapping = _mapping_above(key, mappings)
    assert not isinstance(mapping, str)  # such files are left
    return mapping


def _unmapped(key: str, mappings: Mappings) -> str:
    mapping = _mapping_above(key, mappings)
    return f"its mapping file cannot be used: {mapping}" if isinstance(mapping, str) else ""


def _mapping_above(key: str, mappings: Mappings) -> ColumnMapping | str | None:
    above = (mappings[folder] for folder in PurePosixPath(key).parents if folder in mappings)
    return next(above, None)


def _is_data(key: str) -> bool:
    return not any(map(is_no_data, PurePosixPath(key).parts))


def _not_ready(key: str, sizes: Mapping[str, int], folder: Path | None) -> str:
    """Why a file cannot be read yet; '' if it can."""
    path = PurePosixPath(key)
    if path.name.endswith(_PARTIAL):
        return "it has the name of a partial upload"
    if not sizes[key]:
        return "it is empty"
    if path.name.startswith("part-") and (path.parent / _SUCCESS).as_posix() not in sizes:
        return f"there is no {_SUCCESS} beside it yet"
    if folder is not None and _is_being_written(folder / key):
        return "a process has it open for writing"
    return ""


def _is_being_written(path: Path) -> bool:
    """True if a process of this machine has the file open for writing.

    The kernel grants a read lease (fcntl(2)) only on a file that nobody writes to. File systems
    without leases say nothing.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(handle)
    return False


# Copy files out of the inbox, and count what in their curated rows is fresh.
#
# `take_in` writes into `out`: the files as they came (`inbox/`), raw_files.json as curation reads
# it, and intake.json. The copies are the raw files of the lineage chain: whatever happens to the
# inbox later, they stay. Curation checks their rows.

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
    refused = Counter(row.reason for row in read_table(curated / QUARANTINE, Quarantined))
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
