"""An attacker who may write store and MLflow replaces weights and re-hashes all that follows."""

import re
from collections.abc import Iterator
from pathlib import Path

from data_schemas.statements import Statement
from tasks.provenance.lineage.attestation import to_payload
from tasks.provenance.lineage.signatures.dsse import Signer, seal
from tasks.provenance.lineage.signatures.model import sign_model
from tasks.provenance.lineage.statements import chain, load_statement
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.manifest import MANIFEST

BINARY = {".safetensors", ".parquet", ".npz"}
DIGEST = re.compile(rb"[0-9a-f]{64}|(?<=objects/)[0-9a-f]{16}")


class Rehash:
    """Weights that are replaced wherever they lie, and every digest that depends on them.

    Args:
        store: which the attacker may write.
        signer: the attacker's key; that of the environment signs the weights.
    """

    def __init__(self, store: Path, signer: Signer) -> None:
        self.store = store
        self.signer = signer
        self.renamed: dict[bytes, bytes] = {}
        self.contents: dict[str, bytes] = {}

    def replace(self, root: str, weights: Path) -> str:
        """Flip a bit of the weights and return the new name of the statement `root`."""
        payload = bytearray(weights.read_bytes())
        forged = bytes([*payload[:-1], payload[-1] ^ 1])
        self.contents[sha256_bytes(bytes(payload))] = forged
        for digest, statement in chain(str(self.store), [root]).items():
            self._statement(digest, statement)
        # What came later names it too: promotions, and candidates that were compared with it.
        while any(self._statement(*one) for one in self._later()):
            pass
        for folder in ("executions", "spool"):
            for path in sorted((self.store / folder).rglob("*")):
                if path.is_file():
                    path.write_bytes(self._written(path.read_bytes()))
        return self.renamed[root.encode()].decode()

    def _later(self) -> Iterator[tuple[str, Statement]]:
        written = {name.decode() for name in self.renamed.values()}
        for path in sorted((self.store / "statements").glob("*.json")):
            if path.stem not in written:
                yield path.stem, load_statement(str(self.store), path.stem)

    def _statement(self, digest: str, statement: Statement) -> bool:
        for output in statement.outputs:
            self._object(output.digest)
        text = self._written(canonical_json(statement))
        changed = Statement.model_validate_json(text)
        if changed == statement:
            return False
        after = to_payload(changed)
        name = sha256_bytes(after)
        self.renamed[digest.encode()] = name.encode()
        (self.store / "statements" / f"{digest}.json").unlink()
        envelope = canonical_json(seal(after, [self.signer.sign(after)]))
        (self.store / "statements" / f"{name}.json").write_bytes(envelope)
        return True

    def _object(self, digest: str) -> None:
        folder = self.store / "objects" / digest[:16]
        if not folder.exists():  # renamed before, or evidence that lies elsewhere
            return
        files = [path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST]
        # Files name the digests of others: again until none changes.
        while any(self._file(path) for path in files):
            pass
        before = (folder / MANIFEST).read_bytes()
        if (after := self._written(before)) == before:
            return
        (folder / MANIFEST).write_bytes(after)
        name = sha256_bytes(after)
        self.renamed[digest.encode()] = name.encode()
        self.renamed[digest[:16].encode()] = name[:16].encode()
        folder.rename(folder.with_name(name[:16]))
        signature = self.store / "signatures" / f"{digest[:16]}.sig"
        if signature.exists():
            signature.unlink()
            sign_model(str(self.store), name)

    def _file(self, path: Path) -> bool:
        before = path.read_bytes()
        digest = sha256_bytes(before)
        text = before if path.suffix in BINARY else self._written(before)
        after = self.contents.get(digest, text)
        if after == before:
            return False
        path.write_bytes(after)
        self.renamed[digest.encode()] = sha256_bytes(after).encode()
        return True

    def _written(self, payload: bytes) -> bytes:
        def new(found: re.Match[bytes]) -> bytes:
            name = found[0]
            while name in self.renamed:
                name = self.renamed[name]
            return name

        return DIGEST.sub(new, payload)
