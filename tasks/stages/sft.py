"""Flyte shell of stage 2: fine-tune one parent of the merge."""

from collections.abc import Mapping
from typing import NamedTuple

from data_schemas.addresses import redacted
from data_schemas.arrow import read_table
from data_schemas.artifacts import (
    AnyRef,
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
    StoreRef,
)
from data_schemas.rows import DEMONSTRATIONS, MERGED, Demonstration, Parent
from data_schemas.settings import SFTSettings
from tasks.formats.readiness import is_taught
from tasks.platform.progress import progress
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import workplace
from tasks.stages.runner import Facts, Inputs, Outputs, PassThrough, Record, Work, run
from tasks.store.objects import localise
from tasks.training.sft import train


class FineTuningOutputs(NamedTuple):
    """Outputs of fine-tuning."""

    model: CheckpointRef
    report: ReportRef


class PipelineModel(NamedTuple):
    """The last model of a pipeline."""

    model: CheckpointRef
    training: ReportRef
    evaluation: ReportRef


@shell("has_epochs")
def has_epochs(settings: SFTSettings) -> bool:
    """Look up whether a fine-tuning is part of the workflow."""
    return settings.epochs > 0


@shell("keep_model")
def keep_model(model: CheckpointRef, training: ReportRef, evaluation: ReportRef) -> PipelineModel:
    """Pass on the model of the last phase of RL, which nothing follows."""
    return PipelineModel(model, training, evaluation)


@shell("sft")
def sft(
    settings: SFTSettings,
    parent: Parent,
    curated: DatasetRef,
    base: CheckpointRef,
    context: Context,
) -> FineTuningOutputs:
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
    reads = {"curated": curated, "base": base}
    return run(SFT, settings, reads, context, [parent], name=f"sft/{parent.value}")


def _tune(
    settings: SFTSettings, inputs: Inputs, outputs: Outputs, work: Work, parent: Parent
) -> Facts:
    state = work.state
    rows, start = inputs["curated"], inputs["base"]
    tuning = train.prepare(settings, parent, rows, start, state.folder, work.code)
    for update in progress(train.updates(tuning, state.stop), work.name, tuning.num_updates):
        state.commit()
        if update.epoch:
            work.entry.metrics(update.epoch.epoch, update.epoch.metrics())
    work.entry.rows(len(tuning.rows), len(tuning.rows))
    return train.finish(tuning, outputs["model"], outputs["report"])


def _skip(
    settings: SFTSettings, refs: Mapping[str, AnyRef], store: StoreRef, parent: Parent
) -> PassThrough | None:
    reason = ""
    if existing := settings.parents.get(parent):
        reason = f"existing model: {redacted(existing)}"
    elif not settings.epochs:
        reason = "settings.epochs is 0: the base is passed on"
    elif parent in MERGED:
        curated = refs["curated"]
        folder = localise(curated.uri, curated.digest, workplace(store))
        if not is_taught(parent, read_table(folder / DEMONSTRATIONS, Demonstration)):
            reason = f"no source has demonstrations for {parent.value}: the base is passed on"
    return PassThrough("base", reason) if reason else None


SFT = Record("sft", _tune, FineTuningOutputs, skip=_skip, once=True, past_code=train.past_code)
