"""Two processes that release under the same name at the same time.

python tests/provenance/release/racing.py STORE REPLACES
"""

import os
import sys

from data_schemas.artifacts import CheckpointRef, Execution, StoreRef
from data_schemas.settings import ReleaseSettings
from tasks.provenance.lineage.stage import stage
from tasks.provenance.release.promotion import is_released, turn
from tests.provenance.lineage.forked import fork

NAME = ReleaseSettings().name


def promote(store: StoreRef, execution: Execution, replaces: str = "") -> str:
    """Release a model if the version it replaces is still the released one; its statement."""
    with (
        turn(NAME, store, execution) as held,
        stage("release", ReleaseSettings(), store, execution, "c") as record,
    ):
        passed = not replaces or is_released(NAME, replaces, execution.id, store.tracking_uri)
        with record.output("model") as out:
            (out / "model.safetensors").write_text(execution.id)
            (out / "config.json").write_text("{}")
        record.facts({"released": int(passed), "manifest_sha256": execution.id})
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
