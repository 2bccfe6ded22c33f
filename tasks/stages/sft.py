"""Flyte shell of stage 2: fine-tune one parent of the merge."""

from typing import NamedTuple

from data_schemas.addresses import redacted
from data_schemas.arrow import read_table
from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
    StoreRef,
)
from data_schemas.reports import SKIPPED_FILE
from data_schemas.rows import DEMONSTRATIONS, MERGED, Demonstration, Parent
from data_schemas.settings import SFTSettings
from tasks.durability.durable import keep_durable
from tasks.durability.preemption import listen_for_sigterm
from tasks.formats.readiness import is_taught
from tasks.platform import resources
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.progress import progress
from tasks.platform.retries import checkpoint
from tasks.platform.shell import shell
from tasks.provenance.lineage import finished
from tasks.provenance.lineage.stage import stage, workplace
from tasks.store import results
from tasks.store.files import canonical_json, write_bytes
from tasks.store.objects import localise
from tasks.training.sft import train


class Tuned(NamedTuple):
    """Outputs of fine-tuning."""

    model: CheckpointRef
    report: ReportRef


class Finished(NamedTuple):
    """The last model of a pipeline."""

    model: CheckpointRef
    training: ReportRef
    evaluation: ReportRef


@shell("has_epochs")
def has_epochs(settings: SFTSettings) -> bool:
    """Look up whether a fine-tuning is part of the workflow."""
    return settings.epochs > 0


@shell("keep_model")
def keep_model(model: CheckpointRef, training: ReportRef, evaluation: ReportRef) -> Finished:
    """Pass on the model of the last phase of RL, which nothing follows."""
    return Finished(model, training, evaluation)


@shell("sft")
def sft(
    settings: SFTSettings,
    parent: Parent,
    curated: DatasetRef,
    base: CheckpointRef,
    context: Context,
) -> Tuned:
    """Fine-tune a model on one parent's demonstrations and choose the checkpoint by entropy.

    A parent that is an existing model is passed on; without epochs, or without a demonstration for
    a parent of the merge, so is the base. The state of committed updates is on a disk and, uploaded
    in the background, in the store: a fine-tuning that was killed goes on after the last one when
    it is run again, on this or another machine. One run at a time does a fine-tuning on a store;
    the next one waits for it and returns what it has committed.

    Args:
        settings: of both parents.
        parent: which one.
        curated: its demonstrations.
        base: model to start from, or the existing model of this parent.
        context: of the run.
    """
    name, digest = f"sft/{parent.value}", code_digest("sft")
    if reason := _reason_to_skip(settings, parent, curated, context.store):
        return _passed_on(reason, settings, parent, base, context)
    inputs = (curated.digest, base.digest)
    uri = results.work_uri(context.store.uri, name, settings, *inputs)
    # The disk may be lost with the machine; the store is durable.
    folder = results.work_folder(workplace(context.store), uri)
    with results.exclusive(f"{context.execution.id}, {name}", str(folder), uri) as check_lease:
        if (earlier := finished.find(uri, name, digest, settings, inputs)) and earlier.report:
            results.clear(folder, uri)
            return Tuned(earlier.model, earlier.report)
        with (
            listen_for_sigterm(resources.STAGES["sft"].grace_s) as stop,
            keep_durable(folder, uri, checkpoint(), stop.seconds_left) as uploads,
        ):
            code = tuple(dict.fromkeys((*train.past_code(folder), digest)))
            with stage(name, settings, context, code) as record:
                rows, start = record.read("curated", curated), record.read("base", base)
                tuning = train.prepare(settings, parent, rows, start, folder, digest)
                for update in progress(train.updates(tuning, stop), name, tuning.num_updates):
                    check_lease()
                    uploads.upload_newest()
                    if update.epoch:
                        record.metrics(update.epoch.epoch, update.epoch.metrics())
                with record.output("model") as model, record.output("report") as report:
                    facts = train.finish(tuning, model, report)
                record.facts(facts)
                record.rows(len(tuning.rows), len(tuning.rows))
                deck_of_facts(name, facts)
                tuned = Tuned(record.ref("model", CheckpointRef), record.ref("report", ReportRef))
        finished.record(uri, name, digest, context.execution.id, *tuned)
        results.clear(folder, uri)
    return tuned


def _reason_to_skip(
    settings: SFTSettings, parent: Parent, curated: DatasetRef, store: StoreRef
) -> str:
    """Say why there is nothing to fine-tune; '' if there is."""
    if existing := settings.parents.get(parent):
        return f"existing model: {redacted(existing)}"
    if not settings.epochs:
        return "settings.epochs is 0: the base is passed on"
    if parent not in MERGED:
        return ""
    folder = localise(curated.uri, curated.digest, workplace(store))
    if is_taught(parent, read_table(folder / DEMONSTRATIONS, Demonstration)):
        return ""
    return f"no source has demonstrations for {parent.value}: the base is passed on"


def _passed_on(
    reason: str, settings: SFTSettings, parent: Parent, base: CheckpointRef, context: Context
) -> Tuned:
    name = f"sft/{parent.value}"
    with stage(name, settings, context, code_digest("sft")) as record:
        record.read("existing" if parent in settings.parents else "base", base)
        with record.output("report") as out:
            write_bytes(out / SKIPPED_FILE, canonical_json({"reason": reason}))
        record.facts({"skipped": reason})
        return Tuned(base, record.ref("report", ReportRef))
