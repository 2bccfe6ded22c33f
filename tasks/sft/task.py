"""Flyte shell of stage 2: fine-tune one parent of the merge."""

from typing import NamedTuple

from data_schemas.addresses import redacted
from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, ReportRef, StoreRef
from data_schemas.demonstrations import Parent
from data_schemas.reports import SKIPPED_FILE
from data_schemas.settings import SFTSettings
from tasks.lineage.stage import StageRecord, stage
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.progress import progress
from tasks.platform.shell import shell
from tasks.sft import train
from tasks.store.files import canonical_json, write_bytes


class Tuned(NamedTuple):
    """Outputs of fine-tuning."""

    model: CheckpointRef
    report: ReportRef


@shell("sft")
def sft(
    settings: SFTSettings,
    parent: Parent,
    curated: DatasetRef,
    base: CheckpointRef,
    store: StoreRef,
    execution: Execution,
) -> Tuned:
    """Fine-tune the base on one parent's demonstrations and choose the checkpoint by entropy.

    A parent that is an existing model is passed on; without epochs, so is the base.

    Args:
        settings: of both parents.
        parent: which one.
        curated: its demonstrations.
        base: model to start from, or the existing model of this parent.
        store: of the run.
        execution: of the workflow.
    """
    name = f"sft/{parent.value}"
    with stage(name, settings, store, execution, code_digest("sft")) as record:
        if existing := settings.parents.get(parent):
            record.read("existing", base)
            return Tuned(base, _skipped(record, f"existing model: {redacted(existing)}"))
        if not settings.epochs:
            record.read("base", base)
            return Tuned(base, _skipped(record, "settings.epochs is 0: the base is passed on"))
        rows, start = record.read("curated", curated), record.read("base", base)
        with record.output("model") as model, record.output("report") as report:
            epochs = train.fine_tune(settings, parent, rows, start, model, report)
            for epoch in progress(epochs, name, settings.epochs):
                record.metrics(epoch.epoch, epoch.model_dump(exclude={"epoch", "chosen"}))
            facts = train.facts(report)
        record.facts(facts)
        record.rows(int(facts["demonstrations"]), int(facts["demonstrations"]))
        deck_of_facts(name, facts)
        return Tuned(record.ref("model", CheckpointRef), record.ref("report", ReportRef))


def _skipped(record: StageRecord, reason: str) -> ReportRef:
    with record.output("report") as out:
        write_bytes(out / SKIPPED_FILE, canonical_json({"reason": reason}))
    record.facts({"skipped": reason})
    return record.ref("report", ReportRef)
