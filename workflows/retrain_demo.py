"""Five nights of retraining on a laptop: good rows, drift, a poisoned file, a bad file, no file.

    pyflyte run workflows/retrain_demo.py retrain_demo

releases the shipped base model, plays the nights, audits what is released after each of them, and
ends with one page of the five decisions. One step of RL gains nothing, so the gate only asks that
the new model is not certainly worse than the released one (`presets.NIGHTLY_DEMO`).
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import Context, StoreRef
from data_schemas.intake import Teaching
from data_schemas.settings import RetrainSettings
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.audit import audit
from tasks.stages.chain import link, wire
from tasks.stages.foundation import ingest_base
from tasks.stages.opening import open_store
from tasks.stages.pages import nights_page
from tasks.stages.retraining import drop_files, name_released
from workflows.parts.chain import RAW, curation, evaluation, releasing
from workflows.retrain import retraining


class DemoOutputs(NamedTuple):
    """How a night ended, and where the audit of the released model is."""

    message: str
    audit: str


FIRST_RELEASE = (
    link("base", ingest_base, "context", constants={"path": "", "name": "base"}),
    *(RAW, *curation()),
    evaluation("base", "base"),
    *releasing("base", "evaluation/base", ["evaluation/base"]),
)


@subworkflow
def first_release(settings: RetrainSettings, context: Context) -> str:
    """Release the shipped base model, untrained."""
    return wire(FIRST_RELEASE, models=settings, fitted=settings, context=context)["released"].uri


@subworkflow
def play(settings: RetrainSettings, name: str, after: str, store: StoreRef) -> DemoOutputs:
    """Drop the files of one night into the inbox, retrain, and audit what is released then."""
    dropped = drop_files(night=name, after=after, store=store)
    message = retraining(
        settings=settings,
        inbox=dropped.inbox,
        model="",
        demonstrations=Teaching.SFT,
        store=dropped.store,
    )
    released = name_released(settings=settings, after=message)
    audited = audit(model=released, store=dropped.store)
    return DemoOutputs(message=message, audit=audited)


@entry_point
def retrain_demo(
    settings: RetrainSettings = presets.NIGHTLY_DEMO, store: str = "runs/retrain_demo"
) -> str:
    """Play five nights, and return the location of the page of their decisions.

    Args:
        settings: of the retraining; its inbox is in the store.
        store: a new folder for models, lineage and the inbox.
    """
    context = open_store(store=store, workflow="retrain_demo", last="nights_page")
    released = first_release(settings=settings, context=context)
    good = play(settings=settings, name="good rows", after=released, store=context.store)
    drift = play(settings=settings, name="drift", after=good.message, store=context.store)
    poison = play(
        settings=settings, name="a poisoned file", after=drift.message, store=context.store
    )
    bad = play(settings=settings, name="a bad file", after=poison.message, store=context.store)
    nothing = play(settings=settings, name="nothing", after=bad.message, store=context.store)
    return nights_page(
        names=["good rows", "drift", "a poisoned file", "a bad file", "nothing"],
        messages=[good.message, drift.message, poison.message, bad.message, nothing.message],
        audits=[good.audit, drift.audit, poison.audit, bad.audit, nothing.audit],
        context=context,
    )
