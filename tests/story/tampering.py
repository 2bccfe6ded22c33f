"""Every kind of tampering with a released store, each on a copy of it."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from data_schemas.statements import Statement
from tasks.provenance.lineage.attestation import to_payload
from tasks.provenance.lineage.signatures.dsse import seal
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, find_signer
from tasks.provenance.lineage.statements import chain, statement_uri
from tasks.store.files import canonical_json, sha256_bytes
from tests.story.rehash import Rehash

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Subject:
    """A copy of a store and one release in it."""

    store: Path
    release: str
    """Statement of the release."""
    older: str
    """Statement of the release before."""
    attacker: Path
    """Where the attacker's key is."""

    @property
    def chain(self) -> dict[str, Statement]:
        """Statements that led to the release, each after its producers."""
        return chain(str(self.store), [self.release])

    def folder(self, statement: str) -> Path:
        """The object that a statement made."""
        (output,) = chain(str(self.store), [statement])[statement].outputs
        return self.store / "objects" / output.digest[:16]

    def file(self, statement: str) -> Path:
        """A statement's file."""
        return Path(statement_uri(str(self.store), statement))

    def of(self, stage: str) -> str:
        """Statement of the last stage of that name."""
        return [name for name, one in self.chain.items() if one.stage == stage][-1]


def flip(path: Path) -> None:
    """Change the last bit of a file."""
    payload = path.read_bytes()
    path.write_bytes(payload[:-1] + bytes([payload[-1] ^ 1]))


def flipped_bit(subject: Subject) -> str:
    """One bit."""
    flip(subject.folder(subject.release) / WEIGHTS)
    return "one bit of the released weights is flipped"


def swap(subject: Subject) -> str:
    """Genuine weights in the wrong place."""
    shutil.copy(subject.folder(subject.older) / WEIGHTS, subject.folder(subject.release) / WEIGHTS)
    return "the weights are those of the release before"


def extra_file(subject: Subject) -> str:
    """Code that a loader would run."""
    (subject.folder(subject.release) / "modeling.py").write_text("import os\n")
    return "a file modeling.py is put beside the weights"


def edited_manifest(subject: Subject) -> str:
    """A change that its own manifest agrees with."""
    folder = subject.folder(subject.release)
    flip(folder / WEIGHTS)
    manifest = json.loads((folder / "MANIFEST.json").read_bytes())
    manifest["files"][WEIGHTS]["sha256"] = sha256_bytes((folder / WEIGHTS).read_bytes())
    (folder / "MANIFEST.json").write_bytes(canonical_json(manifest))
    return "a bit is flipped, and MANIFEST.json is given the new sha256"


def deleted_parent(subject: Subject) -> str:
    """The evidence of an ancestor."""
    subject.file(subject.of("merge")).unlink()
    return "the statement of the merge, an ancestor, is deleted"


def replayed(subject: Subject) -> str:
    """A genuine, signed statement under another name."""
    shutil.copy(subject.file(subject.older), subject.file(subject.release))
    return "the statement of the older release, with its genuine signature, replaces the newer one"


def other_key(subject: Subject) -> str:
    """The same payload, signed by somebody else."""
    name = subject.release
    payload = to_payload(subject.chain[name])
    with key(subject.attacker):
        signer = find_signer()
        assert signer
        subject.file(name).write_bytes(canonical_json(seal(payload, [signer.sign(payload)])))
    return "the statement of the release is signed again, with another key"


def edited_by_sql(subject: Subject) -> str:
    """A metric, below MLflow's own interface."""
    with closing(sqlite3.connect(subject.store / "mlflow.db", timeout=60)) as database:
        edit = "UPDATE {} SET value = 0.99 WHERE key = 'accuracy/all'"
        changed = [
            database.execute(edit.format(of)).rowcount for of in ("metrics", "latest_metrics")
        ]
        database.commit()
    assert all(changed)
    return "UPDATE metrics SET value = 0.99 WHERE key = 'accuracy/all'"


def rehashed(subject: Subject) -> str:
    """Everything consistent again."""
    with key(subject.attacker):
        signer = find_signer()
        assert signer
        rehash = Rehash(subject.store, signer)
        rehash.replace(subject.release, subject.folder(subject.release) / WEIGHTS)
    (subject.store / "mlflow.db").unlink()
    return (
        f"the weights are replaced in RL and release; {len(rehash.renamed)} digests that depend on "
        "them are computed again in objects, statements and manifests, which are signed with "
        "another key, and MLflow is filled from it"
    )


@contextmanager
def key(path: Path) -> Iterator[None]:
    """Sign with another key."""
    before = os.environ[KEY_VARIABLE]
    os.environ[KEY_VARIABLE] = str(path)
    try:
        yield
    finally:
        os.environ[KEY_VARIABLE] = before


@dataclass(frozen=True)
class Kind:
    """A kind of tampering and who is expected to name it."""

    do: Callable[[Subject], str]
    audit: str
    """Part of the finding of the audit."""
    tool: str = ""
    """Part of what model-signing says about the release; '' = it cannot see it."""
    statement: str = ""
    """Part of what securesystemslib says about the statement of the release."""
    by_key_alone: bool = False
    """Without the owner's key the audit has nothing to say."""


KINDS = {
    "bit flip": Kind(flipped_bit, "sha256 is", f"Hash mismatch for '{WEIGHTS}'"),
    "swap": Kind(swap, "sha256 is", f"Hash mismatch for '{WEIGHTS}'"),
    "extra file": Kind(extra_file, "added after commit", "Extra files found in model"),
    "edited manifest": Kind(edited_manifest, "MANIFEST.json", "Hash mismatch"),
    "deleted parent": Kind(deleted_parent, "gone"),
    "old statement replayed": Kind(replayed, "sha256"),
    "other key": Kind(other_key, "not by --key", statement="VerificationError", by_key_alone=True),
    "MLflow edited by SQL": Kind(edited_by_sql, "metric accuracy/all is 0.99"),
    "consistent re-hash of the whole chain": Kind(
        rehashed, "not by --key", "Key mismatch", by_key_alone=True
    ),
}
