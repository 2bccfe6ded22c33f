"""Freeze a small released chain as this version writes it: python -m tests.frozen 0.3.0.

Once per release; a frozen store is never made again. The private half of its key is thrown away.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from data_schemas.artifacts import CheckpointRef, Context, RawRef, StoreRef
from data_schemas.settings import CurationSettings, MergeSettings, SFTSettings, Source
from data_schemas.sources import RawFile
from tasks.provenance.lineage.signatures.keys import find_signer, public_path
from tasks.provenance.lineage.stage import stage
from tasks.stages.curation import curate
from tasks.store.files import sha256_file
from tasks.store.interface import store_at
from tests import tiny_chain
from tests.conftest import build_tiny_moe
from tests.provenance.audit.conftest import Maker

LEFT_OUT = shutil.ignore_patterns("*.db*", "spool", "leases", "artifacts", "state")
"""What is MLflow's or on its way to it, and work that is done."""
PUBLIC = "key.pub"
ROWS = 12
"""Sums, each a problem and a demonstration."""


class Whole(Maker):
    """A chain that rests on nothing outside of its store."""

    def run(self) -> None:
        """Make everything from raw rows, which are real, to a release of models that are not."""
        where: dict[str, Any] = {"store": self.store, "execution": self.execution}
        settings = CurationSettings(sources=(Source(adapter="prompt_jsonl"),), held_out_per_suite=1)
        with stage("ingest", settings, Context(self.store, self.execution), "c1") as record:
            with record.output("raw") as out:
                rows = out / "rows.jsonl"
                rows.write_text("".join(f"{json.dumps(row)}\n" for row in tiny_chain.rows(ROWS)))
                listed = RawFile(
                    adapter="prompt_jsonl",
                    uri=rows.name,
                    sha256=sha256_file(rows),
                    bytes=rows.stat().st_size,
                    limit=0,
                    source=0,
                )
                (out / "raw_files.json").write_text(json.dumps([listed.model_dump()]))
            raw = record.ref("raw", RawRef)
        with stage(
            "foundation", SFTSettings(), Context(self.store, self.execution), "c1"
        ) as record:
            with record.output("base") as out:
                build_tiny_moe(out)  # its tokenizer measures lengths
                (out / "model.safetensors").write_bytes(b"base" * 10)
            base = record.ref("base", CheckpointRef)
        curated = curate.task_function(settings=settings, raw=raw, base=base, parts=[], **where)
        self.refs |= {"raw": raw, "base": base, "curated": curated}
        self.finish()

    def step(
        self,
        name: str,
        role: str,
        kind: type,
        inputs: list[str],
        file: str = "model.safetensors",
    ) -> None:
        """Make what a stage would, so that rows are followed through it."""
        with stage(name, MergeSettings(), Context(self.store, self.execution), "c2") as record:
            for wanted in inputs:
                record.read(wanted, self.refs[wanted])
            made = "model" if kind is CheckpointRef else "report"
            with record.output(made) as out:
                (out / file).write_bytes(f"content of {role}".encode() * 10)
                (out / "config.json").write_text("{}")
            record.facts({"rows": 7, "chosen_epoch": 2})
            self.refs[role] = record.ref(made, kind)


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
