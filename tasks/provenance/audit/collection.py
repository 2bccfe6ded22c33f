"""Delete models that nothing needs any more, and leave a signed note in the place of each.

eachprompt gc --store runs --keep released,previous,30d --dry-run

--keep names the released and the previous version of every registered model (with the checkpoints
they were made of), models that were made or read in the last days, and digests of single models.
Only models go: rows, reports, evaluations and statements stay, because audit, trace, retraining and
the gate read them, and so does what was ingested, which nothing here could make again. An audit
accepts the signed note in a model's place and says how many there are. MLflow keeps its runs, which
are the record; the model, its versions and the run that made it have a tag `deleted` with the place
of the note. Once deleted, a version cannot be rolled back to; a stage that Flyte's cache still
knows says that its artifact is gone, and is made again after the cache is cleared.
"""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from data_schemas.artifacts import StoreRef
from data_schemas.statements import ExecutionRecord, Statement, Tombstone
from tasks.errors import DataError, SettingsError, TamperError
from tasks.platform.command_line import command_parser, run
from tasks.platform.resources import STAGES
from tasks.platform.tables import Screen, screen_table
from tasks.provenance.audit.reading import read_record
from tasks.provenance.lineage.catalogue import Catalogue
from tasks.provenance.lineage.promotions import promotions
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.statements import load_statement
from tasks.provenance.lineage.tombstones import PLACE, bury, tombstone_uri
from tasks.store import location
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, manifest_files

_DAY_S = 24 * 3600
MIN_DAYS = 2 + round(max(stage.hours for stage in STAGES.values()) / 24)
"""The longest stage may run this long, and what it reads has no newer record meanwhile."""
_DAYS = re.compile(r"([1-9][0-9]{0,3})d")
_DIGEST = re.compile(r"[0-9a-f]{12,64}")
_INGESTED = "ingest"
"""First word of stages whose outputs come from outside."""


@dataclass(frozen=True, slots=True)
class Keep:
    """What is not deleted."""

    text: str
    versions: int
    """Promotions of each name, counted from the last one."""
    days: int
    digests: tuple[str, ...]


def read_keep(text: str) -> Keep:
    """Read `--keep`.

    Raises:
        SettingsError: a part is unknown, or released versions or enough days are not among them.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    days = [int(match[1]) for part in parts if (match := _DAYS.fullmatch(part))]
    digests = [part for part in parts if _DIGEST.fullmatch(part) and not _DAYS.fullmatch(part)]
    words = [part for part in parts if not _DAYS.fullmatch(part) and part not in digests]
    if unknown := set(words) - {"released", "previous"}:
        raise SettingsError(
            f"--keep {', '.join(sorted(unknown))} is unknown; give released,previous,30d and "
            "digests of 12 digits or more"
        )
    if "released" not in words or not days or max(days) < MIN_DAYS:
        raise SettingsError(
            f"--keep {text}: released and at least {MIN_DAYS}d have to be among them, because a "
            "stage that runs meanwhile may read models of that age"
        )
    versions = 2 if "previous" in words else 1
    return Keep(",".join(parts), versions, max(days), tuple(digests))


def collect(store: str, keep: Keep, now: float) -> list[Tombstone]:
    """List the models that may go, oldest first.

    Args:
        store: folder or s3:// uri.
        keep: what stays.
        now: seconds since 1970.

    Raises:
        TamperError: a statement is damaged, so that nobody knows what it needs.
    """
    statements = _statements(store)
    used = _last_use(statements, _started(store), now)
    needed = _needed_digests(store, statements, keep)
    producers = {
        output.digest: (digest, statement)
        for digest, statement in statements.items()
        if statement.stage.split("/")[0] != _INGESTED
        for output in statement.outputs
    }
    ingested = {
        output.digest
        for statement in statements.values()
        if statement.stage.split("/")[0] == _INGESTED
        for output in statement.outputs
    }
    results = []
    for digest, (name, statement) in producers.items():
        is_named = any(digest.startswith(one) for one in keep.digests)
        if digest in needed | ingested or is_named or now - used[digest] < keep.days * _DAY_S:
            continue
        uri = f"{store}/objects/{digest[:16]}"
        if size := _model_bytes(store, uri, digest):
            note = Tombstone(
                digest=digest,
                uri=uri,
                stage=statement.stage,
                statement=name,
                bytes=size,
                used=used[digest],
                deleted=now,
                kept=keep.text,
                store=location.identity(store),
            )
            results.append(note)
    return sorted(results, key=lambda one: (one.used, one.digest))


def delete(store: StoreRef, notes: Sequence[Tombstone]) -> None:
    """Delete models, marked in MLflow first: a call that was cut is made again.

    Raises:
        EngineError: MLflow or the store does not answer.
    """
    catalogue = Catalogue(store.tracking_uri)
    for note in notes:
        catalogue.mark_deleted(note.digest, tombstone_uri(store.uri, note.digest))
        bury(store.uri, note)


def _statements(store: str) -> dict[str, Statement]:
    results = {}
    for file in sorted(store_at(f"{store}/statements").list_files()):
        digest = file.removesuffix(".json")
        try:
            results[digest] = load_statement(store, digest)
        except DataError as error:
            raise TamperError(f"nothing is deleted: {error}. Run the audit.") from error
    return results


def _started(store: str) -> dict[str, float]:
    """When each statement was written, by the execution records that can be read."""
    times: dict[str, float] = {}
    folder = store_at(f"{store}/executions")
    for file in folder.list_files():
        try:
            record = ExecutionRecord.model_validate_json(read_record(f"{folder.uri}/{file}"))
        except (DataError, ValidationError):
            continue
        times[record.statement] = max(record.started, times.get(record.statement, 0.0))
    return times


def _last_use(
    statements: Mapping[str, Statement], times: Mapping[str, float], now: float
) -> dict[str, float]:
    """When each object was made or last read; what has no record counts as new."""
    used: dict[str, float] = {}
    for name, statement in statements.items():
        when = times.get(name, now)
        for one in (*statement.outputs, *statement.inputs):
            used[one.digest] = max(when, used.get(one.digest, 0.0))
    return used


def _needed_digests(store: str, statements: Mapping[str, Statement], keep: Keep) -> set[str]:
    """List the objects of the releases that stay, and what they were made of."""
    releases: dict[str, list[str]] = {}
    for digest, statement in statements.items():
        if "manifest_sha256" in statement.facts:
            name = str(json.loads(statement.settings).get("name"))
            releases.setdefault(name, []).append(digest)
    stay: set[str] = set()
    for name, all_of_them in releases.items():
        digests = [one.release for one in promotions(name, store, trusted_keys(store))]
        current = list(dict.fromkeys(reversed(digests)))[: keep.versions]
        # Of a version that counted no promotions nobody knows which is released.
        stay |= set(current or all_of_them)
    return {
        one.digest
        for name in stay & statements.keys()
        for one in (*statements[name].inputs, *statements[name].outputs)
    }


def _model_bytes(store: str, uri: str, digest: str) -> int:
    """Size of an object that holds weights; 0 if it holds none or is gone."""
    place = store_at(uri)
    sizes = place.list_files()
    if MANIFEST in sizes:
        listed = manifest_files(place.read_bytes(MANIFEST), uri)
        is_model = any(name.endswith(".safetensors") for name in listed)
    else:  # a deletion that was cut; anything else that lacks its manifest is for the audit
        is_model = bool(sizes) and f"{digest}.json" in store_at(f"{store}/{PLACE}").list_files()
    return sum(sizes.values()) if is_model else 0


def main(arguments: Sequence[str]) -> None:
    """Delete; see --help."""
    parser = command_parser("eachprompt gc", __doc__)
    parser.add_argument("--store", default="runs", help="folder or s3:// prefix [runs]")
    parser.add_argument("--keep", required=True, help="released,previous,30d and digests")
    parser.add_argument("--dry-run", action="store_true", help="print only what would go")
    args = parser.parse_args(arguments)
    keep = read_keep(args.keep)
    store = location.existing_store(args.store, os.environ.get("MLFLOW_TRACKING_URI", ""))
    result = collect(store.uri, keep, time.time())
    if not args.dry_run:
        delete(store, result)
    header = ["model", "stage", "last used (UTC)", "GiB"]
    rows = [
        [
            note.digest[:12],
            note.stage,
            time.strftime("%Y-%m-%d", time.gmtime(note.used)),
            f"{note.bytes / 2**30:.3f}",
        ]
        for note in result
    ]
    console = Screen(soft_wrap=True)
    if rows:
        console.print(screen_table(header, rows))
    total = sum(note.bytes for note in result) / 2**30
    word = "would be deleted" if args.dry_run else "deleted"
    console.print(f"{len(result)} models of {total:.3f} GiB {word}.")


if __name__ == "__main__":
    run(main)
