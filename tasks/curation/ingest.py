"""List the raw files with their digests: the first link of the lineage chain.

Ingestion is never cached, because it reads files outside of the store. Its output is the
list of digests, so a changed raw file changes the digest of the output and with it every
downstream cache key.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import ValidationError

from data_schemas.faults import did_you_mean
from data_schemas.mappings import ColumnMapping
from data_schemas.pass_rates import PASS_RATE
from data_schemas.references import is_reference
from data_schemas.settings import Source
from data_schemas.sources import RAW_FILES, RawFile
from data_schemas.suites import Suite
from tasks.curation import sample_hybrid, sample_purchases, sample_shop, sample_world
from tasks.curation.adapters.media import NEEDS_MEDIA
from tasks.curation.adapters.table import ADAPTERS, EVERY_FILE
from tasks.curation.first_rows import FirstRows, check_first_rows
from tasks.curation.generated import chains, ecommerce, safety, school
from tasks.curation.rows import SUFFIXES, check_readable, has_suffix
from tasks.errors import DataError, SettingsError, TamperError
from tasks.formats.benchmark_file import shipped_suites, suite_of
from tasks.formats.decisions import ADAPTER as DECISIONS
from tasks.formats.decisions import read_decisions
from tasks.formats.exclusions import WITHDRAWN as WITHDRAWN
from tasks.formats.exclusions import read_list
from tasks.formats.licences import ABOUT_ROWS, lacks_licence, responsible_for
from tasks.formats.mapping_files import mapping_of, shipped_mappings
from tasks.formats.no_data import is_no_data
from tasks.formats.solve_rates import ADAPTER as SOLVE_RATES
from tasks.formats.solve_rates import BANDS, check_bands, read_bands, read_rates
from tasks.gym.table import VERIFIERS
from tasks.platform.progress import progress
from tasks.plugins import pin
from tasks.store.copies import copy_files, require_files
from tasks.store.files import canonical_json, copy_file, sha256_file, write_bytes
from tasks.store.hub import HUB, copy_dataset
from tasks.store.interface import store_at

_LOG = logging.getLogger(__name__)
GENERATED = {
    "sample_world": sample_world.generate,
    **sample_hybrid.GENERATORS,
    **sample_shop.GENERATORS,
    "sample_purchases": sample_purchases.generate,
    **safety.GENERATORS,
    **ecommerce.GENERATORS,
    **school.GENERATORS,
    **chains.GENERATORS,
}
"""Sources that need no path: what writes their files, from a seed into a folder."""
LISTS: dict[str, Callable[[Path], object]] = {
    WITHDRAWN: read_list,
    DECISIONS: lambda path: read_decisions([path]),
    SOLVE_RATES: lambda path: read_rates([path]),
    BANDS: lambda path: read_bands([path]),
}
"""Sources that say what becomes of the rows of others: what reads and checks their file."""
_WRITTEN_BY = {
    WITHDRAWN: "an exclusion list is what 'eachprompt forget' writes",
    DECISIONS: "decisions are what people filled into an annotate.jsonl",
    SOLVE_RATES: "solve rates are what evaluate and verify_answers write",
    BANDS: 'bands are lines of {"source": ..., "model": ..., "lowest": ..., "highest": ...}',
}


@dataclass(frozen=True, slots=True)
class _File:
    """A file to hash."""

    source: int
    adapter: str
    limit: int
    path: Path
    uri: str
    mapping: ColumnMapping | None = None
    suite: Suite | None = None
    verifier: str = ""


def ingest(sources: Sequence[Source], seed: int, out: Path) -> dict[str, float | int | str]:
    """Find, hash and list every raw file; generate those that need no path.

    Args:
        sources: in order of precedence: of two duplicate rows, that of the earlier source is kept.
        seed: of generated files.
        out: empty folder; receives raw_files.json, generated files, and the sources that are LISTS.

    Raises:
        SettingsError: a source has an unknown adapter or no readable file, or a band is of an
            unknown source or model; raised before hashing.
    """
    outside = [_find(position, source, out) for position, source in enumerate(sources)]
    _check_bands(sources, outside)
    for source, files in zip(sources, outside, strict=True):
        if files is None:
            generator = _generator(source.adapter)
            assert generator is not None, f"{source.adapter} has no files outside"
            generator(seed, out / source.adapter)
    results = [
        file
        for position, files in enumerate(outside)
        for file in (_list_generated(position, sources[position], out) if files is None else files)
    ]
    for position, (source, files) in enumerate(zip(sources, outside, strict=True)):
        if files is None:
            _check_generated(position, source, [one for one in results if one.source == position])
    results = [_keep(file, out) if file.adapter in LISTS else file for file in results]
    entries = [
        RawFile(
            adapter=file.adapter,
            uri=file.uri,
            sha256=sha256_file(file.path),
            bytes=file.path.stat().st_size,
            limit=file.limit,
            source=file.source,
            mapping=file.mapping,
            suite=file.suite,
            verifier=file.verifier or None,
            evaluation=True if sources[file.source].evaluation else None,
            licence=sources[file.source].licence or None,
            responsible=sources[file.source].responsible or None,
        )
        for file in progress(results, "hashing raw files")
    ]
    write_bytes(out / RAW_FILES, canonical_json(dump(entries)))
    return {
        "sources": len(sources),
        "files": len(entries),
        "bytes": sum(entry.bytes for entry in entries),
        "without_licence": sum(map(lacks_licence, entries)),
        "without_responsible": sum(
            not responsible_for(entry) for entry in entries if entry.adapter not in ABOUT_ROWS
        ),
    }


def check_sources(sources: Sequence[Source]) -> None:
    """Refuse sources that `ingest` would refuse, before any model is copied.

    Of what lies in S3 it is looked up that there is a file to read; what lies on the hub is
    looked at as it is copied.

    Raises:
        SettingsError: as of `ingest`.
    """
    outside = [_find(position, source, None) for position, source in enumerate(sources)]
    if not any(_is_remote(source) for source in sources):
        _check_bands(sources, outside)


def _is_remote(source: Source) -> bool:
    return source.path.startswith(HUB) or (
        bool(source.path) and store_at(source.path).local_path is None
    )


def _generator(adapter: str) -> Callable[[int, Path], None] | None:
    """Return what writes the files of a source from a seed; None if it reads files."""
    if adapter in GENERATED:
        return GENERATED[adapter]
    return ADAPTERS[adapter].generate if adapter in ADAPTERS else None


def dump(entries: Sequence[RawFile]) -> list[dict[str, object]]:
    """Return the entries of raw_files.json."""
    return [entry.model_dump(mode="json", exclude_none=True) for entry in entries]


def raw_files(raw: Path) -> list[RawFile]:
    """Read the list that `ingest` wrote.

    Raises:
        DataError: the folder was not written by `ingest`.
    """
    try:
        entries = json.loads((raw / RAW_FILES).read_bytes())
        return [RawFile.model_validate(entry) for entry in entries]
    except (OSError, ValueError, TypeError, ValidationError) as error:
        raise DataError(f"{raw / RAW_FILES} is not a list of raw files: {error}") from error


def locate(raw: Path, file: RawFile) -> Path:
    """Return the path of a listed file; relative ones are relative to the list's folder."""
    return raw / file.uri  # an absolute uri stays as it is


def check_raw_files(raw: Path) -> list[RawFile]:
    """Hash every listed file again and return the list.

    Raises:
        TamperError: a file is missing or its content changed; the message names it.
    """
    files = raw_files(raw)
    for file in progress(files, "checking raw files"):
        path = locate(raw, file)
        try:
            digest = sha256_file(path)
        except OSError as error:
            raise TamperError(
                f"raw file {path} can no longer be read: {error}. Restore it, or ingest again."
            ) from error
        if digest != file.sha256:
            raise TamperError(
                f"raw file {path}: sha256 is {digest}, recorded {file.sha256}. "
                "Restore it, or ingest again."
            )
    return files


def _find(position: int, source: Source, out: Path | None) -> list[_File] | None:
    """Return the files of a source; None if it is generated.

    Without `out` nothing is copied, and nothing is found of a source that lies elsewhere.
    """
    field = f"curation.sources[{position}]"
    if source.adapter in LISTS:
        return _find_list(position, source, field, out)
    suite, source, mapping = _reading(source, field)
    source = _with_verifier(source, field)
    if not source.path:
        if _generator(source.adapter):
            return None
        raise SettingsError(
            f"{field}.path is empty; adapter {source.adapter!r} reads a file or a folder. "
            f"Set its path. (Only {' and '.join(GENERATED)} need none.)"
        )
    path = _locate(field, source, out)
    if path is None:
        return []
    paths = [path]
    if path.is_dir():
        patterns = EVERY_FILE if mapping else ADAPTERS[source.adapter].files
        paths = _files_in(path, patterns, f"{field}.path", source.adapter)
    elif not path.is_file():
        raise SettingsError(
            f"{field}.path: {path} is no folder or file that adapter {source.adapter!r} reads "
            f"(*{', *'.join(SUFFIXES)}). Correct the path."
        )
    for file in paths:
        try:
            check_readable(file)
        except DataError as error:
            raise SettingsError(f"{field}.path: {error}") from error
    select = suite.select if suite else {}
    first = check_first_rows(
        source.adapter, mapping, paths[0], f"{field}.adapter", source.verifier, select
    )
    if out is not None:  # the command line has called this before, without a folder
        _report(first)
    name = mapping.name if mapping else source.adapter
    return [
        _File(
            *(position, name, source.limit, file, _uri(file, out), mapping, suite, source.verifier)
        )
        for file in paths
    ]


def _check_generated(position: int, source: Source, files: Sequence[_File]) -> None:
    """Check the rewards of rows that code of a user's own generates or scores."""
    if source.verifier or is_reference(source.adapter):
        where = f"curation.sources[{position}].adapter"
        for file in files:
            _report(check_first_rows(file.adapter, None, file.path, where, file.verifier))


def _report(first: FirstRows) -> None:
    for line in first.lost:
        _LOG.warning("%s", line)
    for line in first.unchecked:
        _LOG.info("%s", line)


def _files_in(folder: Path, patterns: Sequence[str], field: str, adapter: str) -> list[Path]:
    """Return the files of a folder that fit; warn of tables that do not.

    Raises:
        SettingsError: none does.
    """
    # Names are compared in small letters: Windows writes UPPER.CSV.
    results = sorted(
        file
        for file in folder.iterdir()
        if not is_no_data(file.name)
        and any(fnmatchcase(file.name.lower(), one.lower()) for one in patterns)
    )
    if not results:
        folders = sorted(one.name for one in folder.iterdir() if one.is_dir())
        inside = f" Files in its folders are not read: {', '.join(folders[:5])}." if folders else ""
        raise SettingsError(
            f"{field}: {folder} has no file that adapter {adapter!r} reads "
            f"({' or '.join(patterns)}).{inside} Correct the path."
        )
    others = [one.name for one in sorted(folder.iterdir()) if one not in results and _is_table(one)]
    if others:
        _LOG.warning(
            "%s: adapter %s does not read %d files of the folder: %s",
            *(field, adapter, len(others), ", ".join(others[:5])),
        )
    return results


def _is_table(path: Path) -> bool:
    """True for a file that looks like rows: no text for people, no metadata."""
    texts = (".md", ".txt", ".py", ".yaml", ".yml", ".lock", ".html", ".pdf")
    return path.is_file() and not is_no_data(path.name) and path.suffix.lower() not in texts


def _reading(source: Source, field: str) -> tuple[Suite | None, Source, ColumnMapping | None]:
    """Return the suite of a benchmark, the source with its adapter, and the mapping if it has one.

    Raises:
        SettingsError: there is no such adapter, mapping or suite.
    """
    if source.adapter in NEEDS_MEDIA:
        cause = NEEDS_MEDIA[source.adapter]
        raise SettingsError(f"{field}.adapter is {source.adapter!r}: {cause}")
    suite = suite_of(source.adapter) if source.evaluation else None
    if suite is not None:
        source = source.model_copy(update={"adapter": suite.name})
    mapping = suite.mapping if suite else None
    if mapping is None and source.adapter not in ADAPTERS.data and not is_reference(source.adapter):
        mapping = mapping_of(source.adapter)
    if mapping is not None:
        mapping = _with_pin(mapping, f"{field}.adapter")
        _check_mapping(mapping, f"{field}.adapter")
    elif is_reference(source.adapter):
        source = source.model_copy(update={"adapter": _pinned_adapter(source, field)})
    elif source.adapter not in ADAPTERS:
        raise SettingsError(
            f"{field}.adapter is {source.adapter!r}. {_advice(source.adapter)}Use one of "
            f"{', '.join(_adapter_names())}, or a mapping file that ends in .yaml or .json."
        )
    return suite, source, mapping


def _locate(field: str, source: Source, out: Path | None) -> Path | None:
    """Return the file or folder of a source; what lies elsewhere is copied beside the list.

    Without `out` that is None.

    Raises:
        SettingsError: it is of an unknown scheme, or there is no such file in S3 or on the hub.
    """
    try:
        if out is None:
            if not _is_remote(source):
                return Path(source.path).expanduser().resolve()
            if not source.path.startswith(HUB):
                require_files(source.path, SUFFIXES)
            return None
        if source.path.startswith(HUB):
            return copy_dataset(source.path, out, SUFFIXES)
        if store_at(source.path).local_path is None:
            return copy_files(source.path, out, SUFFIXES)
    except (DataError, SettingsError) as error:
        raise SettingsError(f"{field}.path: {error}") from error
    return Path(source.path).expanduser().resolve()


def _uri(file: Path, out: Path | None) -> str:
    return str(file.relative_to(out) if out and file.is_relative_to(out) else file)


def _find_list(position: int, source: Source, field: str, out: Path | None) -> list[_File]:
    """Return an exclusion list or decisions, whose every row is read, whatever the limit."""
    path = _locate(field, source, out)
    if path is None:
        return []
    if not path.is_file():
        raise SettingsError(f"{field}.path: {path} is no file; {_WRITTEN_BY[source.adapter]}")
    try:
        LISTS[source.adapter](path)
    except DataError as error:
        raise SettingsError(f"{field}.path: {error}") from error
    return [_File(position, source.adapter, 0, path, f"{source.adapter}/{position}.jsonl")]


def _check_bands(sources: Sequence[Source], outside: Sequence[list[_File] | None]) -> None:
    """Check that bands are of sources that are trained on, and of models with rates of them.

    Raises:
        SettingsError: one is not, or two files contradict each other.
    """
    results = [file for files in outside for file in files or ()]
    paths = {name: [one.path for one in results if one.adapter == name] for name in LISTS}
    models: dict[str, set[str]] = {
        source.adapter: set()
        for source, files in zip(sources, outside, strict=True)
        if files is None and not source.evaluation
    }
    for file in results:
        if file.adapter not in LISTS and not sources[file.source].evaluation:
            facets = file.mapping.facets if file.mapping else {}
            models.setdefault(file.adapter, set()).update(
                name.removeprefix(PASS_RATE) for name in facets if name.startswith(PASS_RATE)
            )
    try:
        for measured in read_rates(paths[SOLVE_RATES]).values():
            models.get(measured.source, set[str]()).update(measured.rates)
        check_bands(read_bands(paths[BANDS]), models)
    except DataError as error:
        raise SettingsError(f"curation.sources: {error}") from error


def _keep(file: _File, out: Path) -> _File:
    """Copy a list: what was left out or corrected must be known as long as the set is."""
    if file.path.is_relative_to(out):  # as it came from S3
        return replace(file, uri=str(file.path.relative_to(out)))
    copy_file(file.path, out / file.uri)
    return replace(file, path=out / file.uri)


def _pinned_adapter(source: Source, field: str) -> str:
    """Pin an adapter of a user's own.

    Raises:
        SettingsError: it cannot be loaded, or is none.
    """
    ADAPTERS.find(source.adapter, f"{field}.adapter")
    return pin(source.adapter)


def _with_pin(mapping: ColumnMapping, where: str) -> ColumnMapping:
    """Pin the verifier of a mapping if it is one of a user's own.

    Raises:
        SettingsError: it cannot be loaded, or is none.
    """
    if not is_reference(mapping.verifier):
        return mapping
    VERIFIERS.find(mapping.verifier, f"{where}: mapping {mapping.name} has a verifier, which")
    return mapping.model_copy(update={"verifier": pin(mapping.verifier)})


def _with_verifier(source: Source, field: str) -> Source:
    """Pin the verifier that a source names beside its adapter.

    Raises:
        SettingsError: there is none of that name, or it cannot be loaded.
    """
    if not source.verifier:
        return source
    VERIFIERS.find(source.verifier, f"{field}.verifier")
    pinned = pin(source.verifier) if is_reference(source.verifier) else source.verifier
    return source.model_copy(update={"verifier": pinned})


def _check_mapping(mapping: ColumnMapping, where: str) -> None:
    """Refuse a mapping that could be mistaken for an adapter, or whose problems nobody verifies.

    Raises:
        SettingsError: names the key.
    """
    if mapping.name in {*ADAPTERS, *LISTS}:
        raise SettingsError(f"{where}: mapping name {mapping.name!r} is that of an adapter")
    if mapping.verifier and mapping.verifier not in VERIFIERS:
        raise SettingsError(
            f"{where}: mapping {mapping.name} has verifier {mapping.verifier!r}. Use one of "
            f"{', '.join(sorted(VERIFIERS))}."
        )


def _adapter_names() -> list[str]:
    return sorted({*ADAPTERS, *shipped_mappings(), *shipped_suites(), *LISTS})


def _advice(adapter: str) -> str:
    """Say what was probably meant; '' if nothing is near."""
    if "/" in adapter or has_suffix(adapter):
        return "A path stands behind the adapter: adapter=path. "
    likely = did_you_mean(adapter, _adapter_names())
    return f"{likely[0].upper()}{likely[1:]} " if likely else ""


def _list_generated(position: int, source: Source, out: Path) -> list[_File]:
    return [
        _File(
            position,
            source.adapter,
            source.limit,
            out / source.adapter / name,
            f"{source.adapter}/{name}",
            verifier=_with_verifier(source, f"curation.sources[{position}]").verifier,
        )
        for name in ADAPTERS[source.adapter].files
    ]
