"""Flyte shell of stage 2: fine-tune one parent of the merge."""

from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, ReportRef, StoreRef
from data_schemas.demonstrations import Parent
from data_schemas.settings import SFTSettings
from tasks.lineage.stage import stage
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.progress import progress
from tasks.platform.shell import shell
from tasks.sft import train


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
    """Fine-tune the base on one parent's demonstrations and choose the checkpoint by entropy."""
    name = f"sft/{parent.value}"
    with stage(name, settings, store, execution, code_digest("sft")) as record:
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
