"""Stages with contents of a few bytes: ingest, sft, release."""

from data_schemas.artifacts import CheckpointRef, Context, DatasetRef, Execution, StoreRef
from data_schemas.settings import MergeSettings, ReleaseSettings, SFTSettings
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.registry import CARD_FILE, MANIFEST_TAG
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import stage

ACCURACY = {"accuracy/all": 0.25, "accuracy/domain:maths": 0.75, "accuracy/source:gsm8k": 0.5}


def make_raw(store: StoreRef, execution: Execution, payload: bytes = b"a,b\n") -> DatasetRef:
    """Ingest one file."""
    with stage("ingest", MergeSettings(), Context(store, execution), "code-1") as record:
        with record.output("raw") as out:
            (out / "rows.csv").write_bytes(payload)
        record.rows(0, 1)
        return record.ref("raw", DatasetRef)


def train(store: StoreRef, execution: Execution, raw: DatasetRef, steps: int = 3) -> CheckpointRef:
    """Make a model of the file, with curves and facts."""
    with stage(
        "sft/reasoning", SFTSettings(), Context(store, execution), ("code-2", "code-3")
    ) as record:
        rows = (record.read("demonstrations", raw) / "rows.csv").read_bytes()
        for step in range(1, steps + 1):
            record.metrics(step, {"loss/nats": 1.0 / step, "pass@1": 0.5})
        with record.output("model") as out:
            (out / "model.safetensors").write_bytes(rows * 10)
            (out / "config.json").write_text("{}")
        record.facts({"epochs": 3, "entropy_nats": 0.4, "chosen": "epoch-2"})
        record.rows(7, 5)
        return record.ref("model", CheckpointRef)


def release(
    store: StoreRef, execution: Execution, model: CheckpointRef, *, released: bool = True
) -> CheckpointRef:
    """Register the model under the default name."""
    settings = ReleaseSettings()
    with stage("release", settings, Context(store, execution), "code-4") as record:
        folder = record.read("candidate", model)
        with record.output("model") as out:
            (out / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
            (out / "config.json").write_text("{}")
            (out / CARD_FILE).write_text("# Tiny")
        record.facts({"released": int(released), "manifest_sha256": "m" * 64, **ACCURACY})
        if released:
            digest, keys = record.digest_of("model"), trusted_keys(store.uri)
            record.facts(next_promotion(settings.name, store.uri, keys, digest))
        ref = record.ref("model", CheckpointRef)
        tags = {MANIFEST_TAG: "m" * 64}
        record.register("model", settings.name, released=released, tags=tags, description="# Tiny")
        return ref


def run_all(store: StoreRef, execution: Execution, payload: bytes = b"a,b\n") -> CheckpointRef:
    """All three stages."""
    model = train(store, execution, make_raw(store, execution, payload))
    return release(store, execution, model)
