"""Freeze a small released chain as this version writes it: python -m tests.frozen 0.3.0.

Once per release; a frozen store is never made again. The private half of its key is thrown away.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from data_schemas.artifacts import CheckpointRef, DatasetRef, StoreRef
from data_schemas.settings import CurationSettings, SFTSettings
from tasks.provenance.lineage.signatures.keys import find_signer, public_path
from tasks.provenance.lineage.stage import stage
from tasks.store.interface import store_at
from tests.provenance.audit.conftest import Maker

LEFT_OUT = shutil.ignore_patterns("*.db*", "spool", "leases")
"""MLflow's file, and what is on its way to it."""
PUBLIC = "key.pub"


class Whole(Maker):
    """A chain that rests on nothing outside of its store."""

    def run(self) -> None:
        """Make everything from raw rows to the registered release."""
        with stage("ingest", CurationSettings(), self.store, self.execution, "c1") as record:
            with record.output("raw") as out:
                (out / "world.jsonl").write_text('{"q": 1}\n')
            self.refs["raw"] = record.ref("raw", DatasetRef)
        with stage("foundation", SFTSettings(), self.store, self.execution, "c1") as record:
            with record.output("base") as out:
                (out / "model.safetensors").write_bytes(b"base" * 10)
                (out / "config.json").write_text("{}")
            self.refs["base"] = record.ref("base", CheckpointRef)
        self.step("curate", "curated", DatasetRef, ["raw", "base"], "problems.parquet")
        self.finish()


def freeze(version: str, folder: Path) -> None:
    """Write the store of a version into a folder."""
    with tempfile.TemporaryDirectory() as made:
        key = Path(made) / "key" / "signing_key.pem"
        key.parent.mkdir()
        os.environ["EACHPROMPT_SIGNING_KEY"] = str(key)
        find_signer()
        place = Path(made) / "store"
        identity = store_at(str(place)).open()
        tracking = f"sqlite:///{place / 'mlflow.db'}"
        store = StoreRef(uri=str(place), id=identity, tracking_uri=tracking)
        Whole(store, Path(made)).run()
        shutil.copytree(place, folder, ignore=LEFT_OUT)
        shutil.copy(public_path(), folder / PUBLIC)


if __name__ == "__main__":
    freeze(sys.argv[1], Path(__file__).parent / sys.argv[1])
