"""Two processes that release under the same name at the same time.

python tests/provenance/release/racing.py STORE REPLACES
"""

import os
import sys
from pathlib import Path

from data_schemas.artifacts import CheckpointRef, Context, Execution, StoreRef
from data_schemas.settings import ReleaseSettings
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.releases import is_current
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import stage
from tasks.provenance.release.promotion import turn
from tasks.store.files import sha256_bytes
from tests.provenance.lineage.forked import fork

NAME = ReleaseSettings().name


def digest_of(execution: str) -> str:
    """Digest of the candidate of an execution."""
    return sha256_bytes(execution.encode())


def promote(store: StoreRef, execution: Execution, replaces: str = "") -> str:
    """Release a model if the version it replaces is still the released one; its statement."""
    with (
        turn(NAME, Context(store, execution)) as held,
        stage("release", ReleaseSettings(), Context(store, execution), "c") as record,
    ):
        candidate = Path(store.uri).parent / f"candidate-{execution.id}"
        candidate.write_text(execution.id)
        record.source("candidate", candidate)
        passed = not replaces or is_current(NAME, replaces, digest_of(execution.id), store.uri)
        with record.output("model") as out:
            (out / "model.safetensors").write_text(execution.id)
            (out / "config.json").write_text("{}")
        record.facts({"released": int(passed), "manifest_sha256": execution.id})
        if passed:
            digest = record.digest_of("model")
            record.facts(next_promotion(NAME, store.uri, trusted_keys(store.uri), digest))
        ref = record.ref("model", CheckpointRef)
        held.confirm()
        record.register("model", NAME, released=passed, tags={}, replaces=replaces)
        return ref.statement


def main(place: str, replaces: str) -> int:
    """Race; the number of processes that failed."""
    import mlflow  # noqa: F401 - before the fork, so that every child has it

    store = StoreRef.model_validate_json(place)
    executions = [Execution(id=name, started=0.0) for name in ("left", "right")]
    children = [fork(lambda one=one: promote(store, one, replaces)) for one in executions]
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
