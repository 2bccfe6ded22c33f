"""Re-hash the chain: every statement, object and external file.

MLflow is not used here. Every difference from the record becomes a finding on its node, and the
walk continues, so that one damaged statement does not hide another.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from urllib.parse import unquote

from data_schemas.audits import Finding
from data_schemas.rows import CROISSANT
from data_schemas.sources import RAW_FILES
from data_schemas.statements import Input, Statement
from tasks.errors import DataError, SettingsError, TamperError
from tasks.provenance.audit.reading import (
    Problem,
    UnreadableEvidence,
    check_folder,
    read_linked,
    read_record,
)
from tasks.provenance.lineage import origins
from tasks.provenance.lineage.promotions import led_to
from tasks.provenance.lineage.publication import open_published
from tasks.provenance.lineage.signatures.dsse import fingerprint
from tasks.provenance.lineage.signatures.keys import TrustedKeys
from tasks.provenance.lineage.statements import AttestedStatement, open_statement, statement_uri
from tasks.provenance.lineage.tombstones import read_tombstone, tombstone_uri
from tasks.store.files import sha256_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST, manifest_files

# Comparison of a data set's Croissant metadata with the manifest of its object.


def croissant_problems(metadata: bytes, listed: Mapping[str, str]) -> Iterator[str]:
    """Yield every digest in the metadata that is not the file's.

    Args:
        metadata: the file's content.
        listed: files of the same object, with the sha256 that its manifest has.
    """
    try:
        for file in json.loads(metadata)["distribution"]:
            name, claimed = file["contentUrl"], file["sha256"]
            if listed.get(name) != claimed:
                entry = listed.get(name, "unknown: there is no such file")
                yield f"{name} has sha256 {claimed}, its object's manifest {entry}"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        yield f"is no Croissant metadata of this version: {error!r:.200}"


MODEL = "model"
"""Id of the node of the registered version."""


def origin_id(node: str) -> str:
    """Id of the node of the external files that a stage read."""
    return f"origin:{node}"


_OBJECTS_AT_ONCE = max(4, os.cpu_count() or 1)


class Evidence:
    """The objects re-hashed so far, and the findings on them.

    Args:
        store: folder or s3:// uri the artifacts lie in.
        keys: public keys that have to vouch for every statement; None = nobody has to.
        outside: hash files outside the store as well.
        published: what lies there are statements of a published release, without the objects.
    """

    def __init__(
        self,
        store: str,
        keys: TrustedKeys | None = None,
        *,
        outside: bool = True,
        published: bool = False,
    ) -> None:
        self.store = store
        self._published = published
        self._open = open_published if published else open_statement
        self._read = read_linked if published else read_record
        self.keys = keys
        self._outside = outside
        self._vouched: dict[str, frozenset[str]] = {}
        """Last statement of a key that has one -> all that led to it."""
        self.signers: dict[str, tuple[str, ...]] = {}
        """Statement digest -> public keys whose signatures fit."""
        self.statements: dict[str, Statement] = {}
        """Sound ones, by digest, each after its producers."""
        self.damaged: set[str] = set()
        """Digests of statements that are missing or were changed."""
        self.origins: dict[str, list[tuple[str, str]]] = defaultdict(list)
        """Statement digest -> (external file, sha256)."""
        self.findings: dict[str, list[Finding]] = defaultdict(list)
        """Node id -> findings."""
        self.buried: set[str] = set()
        """Digests of models that were deleted on purpose."""
        self.rehashed_bytes = 0
        self._objects: dict[str, bool] = {}
        self._pool = ThreadPoolExecutor(_OBJECTS_AT_ONCE)
        self._checks: dict[str, Future[tuple[list[Problem], int]]] = {}
        """Object digest -> its problems and its size, begun as soon as a statement names it."""

    @property
    def objects(self) -> set[str]:
        """Digests of all re-hashed objects, and of those with a tombstone in their place."""
        return set(self._objects)

    @property
    def raw_files(self) -> dict[str, str]:
        """Every external file with its sha256."""
        return {name: sha256 for files in self.origins.values() for name, sha256 in files}

    def add(self, node: str, where: str, problem: str) -> None:
        self.findings[node].append(Finding(object=where, problem=problem))

    def visit(self, digest: str) -> None:
        """Check a statement, all its ancestors, and their outputs."""
        # Not recursive: a model that was retrained every night has a very long chain.
        waiting = [digest]
        opened: dict[str, Statement] = {}
        while waiting:
            current = waiting.pop()
            if current in self.statements or current in self.damaged:
                continue
            if current in opened:
                self._check(current, opened[current])
                continue
            statement = self._load(current)
            if statement is None:
                self.damaged.add(current)
                continue
            opened[current] = statement
            waiting.append(current)
            waiting += [item.statement for item in statement.inputs if item.statement]

    def peek(self, digest: str) -> AttestedStatement | None:
        """Read a statement without adding a finding; None if it is not sound."""
        try:
            content = self._read(statement_uri(self.store, digest))
            return self._open(content, digest, self.store)
        except DataError:
            return None

    def _statement(self, digest: str) -> Statement | None:
        attested = self.peek(digest)
        return attested.statement if attested else None

    def check_object(self, node: str, uri: str, digest: str) -> bool:
        """Re-hash an object once; False if it differs from its manifest.

        A model that was deleted on purpose is as recorded if its tombstone is. Of an object that is
        not here, nothing can differ.
        """
        if self._published or not self._may_open(node, uri, digest):
            return True
        if digest not in self._objects:
            problems, size = self._begin(uri, digest).result()
            if [what for _, what in problems] == ["gone"] and self._is_buried(node, digest):
                problems = []
            for where, what in problems:
                self.add(node, where, what)
            self.rehashed_bytes += size
            self._objects[digest] = not problems
        return self._objects[digest]

    def _is_buried(self, node: str, digest: str) -> bool:
        where = tombstone_uri(self.store, digest)
        try:
            signers = read_tombstone(read_record(where), digest, where)[1]
        except UnreadableEvidence:
            return False
        except TamperError as error:
            self.add(node, where, str(error).removeprefix(f"{where}: "))
            return False
        self.check_signers(node, where, signers)
        self.buried.add(digest)
        return True

    def _begin(self, uri: str, digest: str) -> Future[tuple[list[Problem], int]]:
        if digest not in self._checks:
            place = origins.object_uri(self.store, uri, digest)
            self._checks[digest] = self._pool.submit(_check_object, place, digest)
        return self._checks[digest]

    def listed_files(self, uri: str, digest: str) -> dict[str, str]:
        """Files and sha256 in an object's manifest; empty if it cannot be read."""
        where = f"{origins.object_uri(self.store, uri, digest)}/{MANIFEST}"
        try:
            manifest = read_record(where)
            if sha256_bytes(manifest) != digest:
                return {}
            return manifest_files(manifest, where)
        except (DataError, SettingsError):
            return {}

    def _load(self, digest: str) -> Statement | None:
        uri = statement_uri(self.store, digest)
        try:
            content = self._read(uri)
            self.rehashed_bytes += len(content)
            attested = self._open(content, digest, self.store)
        except DataError as error:
            self.add(digest, uri, str(error).removeprefix(f"{uri}: "))
            return None
        self.signers[digest] = attested.signers
        self.check_signers(digest, uri, attested.signers)
        inputs = [one for one in attested.statement.inputs if not origins.is_source(one)]
        for item in () if self._published else (*inputs, *attested.statement.outputs):
            if self._may_open(digest, item.uri, item.digest):
                self._begin(item.uri, item.digest)
        return attested.statement

    def check_signers(self, node: str, where: str, signers: Sequence[str]) -> None:
        """Add a finding if no key of the auditor vouches for the statement of a node."""
        if self.keys is None or any(self.vouches(signer, node) for signer in signers):
            return
        others = " and ".join(fingerprint(signer)[:16] for signer in signers)
        if any(signer in self.keys for signer in signers):
            problem = f"signed by key {others}, which was revoked or has expired"
        else:
            problem = f"signed by {f'key {others}, not by --key' if others else 'nobody'}"
        self.add(node, where, problem)

    def _is_strange(self, node: str) -> bool:
        """True for a statement that no key of the auditor vouches for, which has its finding.

        Of the places that it names outside of the store none is opened: whoever planted it would
        choose what the auditor's machine reads, and for how long.
        """
        return self.keys is not None and not any(
            self.vouches(signer, node) for signer in self.signers.get(node, ())
        )

    def _may_open(self, node: str, uri: str, digest: str) -> bool:
        place = origins.object_uri(self.store, uri, digest)
        return place.startswith(f"{self.store}/objects/") or not self._is_strange(node)

    def vouches(self, signer: str, statement: str) -> bool:
        """True if a key of the auditor signed, and is not revoked for this statement."""
        key = (self.keys or {}).get(signer)
        if key is None or key.last is None:
            return key is not None
        if key.last not in self._vouched:
            self._vouched[key.last] = led_to(key.last, self._statement)
        return statement in self._vouched[key.last]

    def _check(self, digest: str, statement: Statement) -> None:
        self.statements[digest] = statement
        for item in statement.inputs:
            self._check_input(digest, item)
        for output in statement.outputs:
            self.check_object(digest, output.uri, output.digest)
            if self._published or not self._may_open(digest, output.uri, output.digest):
                continue
            uri = origins.object_uri(self.store, output.uri, output.digest)
            if not (listed := self.listed_files(output.uri, output.digest)):
                continue  # reported with the object
            self._check_raw_files(digest, uri, output.digest, listed)
            self._check_croissant(digest, f"{uri}/{CROISSANT}", listed)

    def _check_input(self, node: str, item: Input) -> None:
        if not item.statement and self._is_made(item, self.statements[node]):
            problem = f"read {item.role!r} {item.digest}, of which no statement says what made it"
            self.add(node, statement_uri(self.store, node), problem)
            self.check_object(node, item.uri, item.digest)
            return
        if origins.is_source(item):
            self.origins[node].append((item.uri, item.digest))
            self._check_source(node, item)
            return
        producer = self.statements.get(item.statement)
        if producer and item.digest not in {output.digest for output in producer.outputs}:
            self.add(
                node,
                statement_uri(self.store, node),
                f"read {item.role!r} {item.digest}, which its producer {producer.stage} never made",
            )
        # If the producer is damaged, its objects are still known from their readers.
        self.check_object(node, item.uri, item.digest)

    def _is_made(self, item: Input, reader: Statement) -> bool:
        """True for an input that is no root, although it names no statement: an object of a store.

        What an ingestion copied from another store it has made as well.
        """
        place = unquote(item.uri.removeprefix("file://"))
        if not origins.is_source(item) or place.startswith(f"{self.store}/objects/"):
            return True
        is_copied = item.digest in {output.digest for output in reader.outputs}
        return place.endswith(f"/objects/{item.digest[:16]}") and not is_copied

    def _check_source(self, node: str, item: Input) -> None:
        if not self._outside or self._is_strange(node):
            return
        try:
            result = f"sha256 is {origins.present_digest(item)}"
        except DataError as error:
            result = str(error)
        except OSError as error:
            result = f"cannot be read: {error.strerror}"
        except ValueError:  # file://[
            result = "is no place"
        if result == f"sha256 is {item.digest}":
            return
        # A store has its own copy of a base model, with the digest of a folder of the same files:
        # what was read is known, whatever an upgrade or a move left at the place it was read from.
        if list(check_folder(f"{self.store}/objects/{item.digest[:16]}", item.digest)):
            self.add(origin_id(node), item.uri, f"{result}, recorded {item.digest}")

    def _check_croissant(self, node: str, where: str, listed: Mapping[str, str]) -> None:
        """What a curated set says of its tables is what was hashed."""
        if CROISSANT not in listed:
            return
        try:
            metadata = read_record(where)
        except DataError:
            return  # reported with the object
        if sha256_bytes(metadata) == listed[CROISSANT]:
            for problem in croissant_problems(metadata, listed):
                self.add(node, where, problem)

    def _check_raw_files(self, node: str, uri: str, digest: str, listed: Mapping[str, str]) -> None:
        where = f"{uri}/{RAW_FILES}"
        try:
            if sha256_bytes(read_record(where)) != listed.get(RAW_FILES):
                return  # reported with the object
        except DataError:
            return
        for raw in origins.read_raw_files(uri):
            name = origins.raw_name(digest, raw)
            self.origins[node].append((name, raw.sha256))
            if origins.is_inside(raw):
                entry = listed.get(raw.uri, "not among the files of its object")
            elif not self._outside or self._is_strange(node):
                continue
            else:
                try:
                    entry = store_at(raw.uri).sha256()
                    self.rehashed_bytes += raw.bytes
                except (DataError, OSError) as error:
                    entry = f"unknown, it cannot be read ({error})"
            if entry != raw.sha256:
                self.add(origin_id(node), name, f"sha256 is {entry}, recorded {raw.sha256}")


def _check_object(uri: str, digest: str) -> tuple[list[Problem], int]:
    """Return an object's problems and, if it has none, how many bytes were hashed."""
    try:
        store_at(uri)
    except SettingsError:
        return [(uri, "is neither a path nor s3://bucket/prefix")], 0
    problems = list(check_folder(uri, digest))
    return problems, 0 if problems else sum(store_at(uri).list_files().values())
