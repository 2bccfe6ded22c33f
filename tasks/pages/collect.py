"""Collect the contents of a run's terminal summary and report from its artifacts."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from data_schemas.arrow import read_table
from data_schemas.artifacts import (
    AnyRef,
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
    StoreRef,
)
from data_schemas.reports import SKIPPED_FILE, Comparison, GateDecision
from data_schemas.rows import HELD_OUT, Problem
from data_schemas.settings import PipelineSettings, RetrainSettings
from tasks.errors import DataError, EngineError
from tasks.formats.progression import read_comparisons, read_precisions, read_progression
from tasks.pages.before_after import BeforeAfter, before_and_after
from tasks.pages.inputs import RunInputs
from tasks.pages.stage_rows import stage_rows
from tasks.provenance.lineage.connection import REPAIR
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.origins import object_uri
from tasks.provenance.lineage.registry import GATE_FILE
from tasks.provenance.lineage.signatures.dsse import fingerprint
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, find_signer, public_half
from tasks.provenance.lineage.stage import workplace
from tasks.provenance.lineage.statements import load_statement
from tasks.store.objects import localise

Ref = AnyRef
MERGED = "merged"
COMPARED, CANDIDATE, FIRST = "compare", "candidate", "parent/1"
"""The stage that compares a candidate with all models before it, and two of its inputs."""
TRAINING_VIEW = "http://127.0.0.1:5000/#/experiments?workflowType=machine_learning"
"""MLflow's address for experiments that train; without it the page may open on traces of chats."""


def collect(
    settings: PipelineSettings | RetrainSettings,
    curated: DatasetRef,
    reports: Sequence[ReportRef],
    releases: Sequence[CheckpointRef],
    context: Context,
    precisions: Sequence[ReportRef] = (),
) -> RunInputs:
    """Read the artifacts of a run; a report's statement names the stage that wrote it.

    Args:
        settings: of the run.
        curated: of curation.
        reports: of fine-tunings and phases, in order, and the checkpoint progression.
        releases: none or one.
        context: of the run.
        precisions: reports of a model in other precisions; none or one.
    """
    folders = dict(_folders(reports, context.store))
    progression = folders[COMPARED]
    gate = [_gate(_local(ref, context.store)) for ref in releases]
    refs: list[Ref] = [curated, *reports, *precisions, *releases]
    return RunInputs(
        workflow=context.execution.workflow,
        execution=context.execution,
        settings=settings,
        stages=stage_rows(context.store.uri, context.execution.id, [ref.statement for ref in refs]),
        progression=read_progression(progression),
        gains=_gains(read_comparisons(progression)),
        answers=_answers(reports, _local(curated, context.store), context.store),
        precisions=tuple(
            one for ref in precisions for one in read_precisions(_local(ref, context.store))
        ),
        gate=gate[0] if gate else None,
        phases=_under("rl/", folders),
        tunings=_under("sft/", folders),
        curated=_local(curated, context.store),
        places=_places(settings.release.name, releases, gate, context.store),
    )


def _folders(reports: Sequence[ReportRef], store: StoreRef) -> Iterator[tuple[str, Path]]:
    for ref in reports:
        yield load_statement(store.uri, ref.statement).stage, _local(ref, store)


def _local(ref: Ref, store: StoreRef) -> Path:
    return localise(ref.uri, ref.digest, workplace(store))


def _under(prefix: str, folders: dict[str, Path]) -> dict[str, Path]:
    return {
        stage: folder
        for stage, folder in folders.items()
        if stage.startswith(prefix) and not (folder / SKIPPED_FILE).exists()
    }


def _answers(
    reports: Sequence[ReportRef], curated: Path, store: StoreRef
) -> tuple[BeforeAfter, ...]:
    """Read what the first model and the candidate answered; the comparison names both."""
    statements = (load_statement(store.uri, ref.statement) for ref in reports)
    compared = next(one for one in statements if one.stage == COMPARED)
    inputs = {item.role: item for item in compared.inputs}
    if not {CANDIDATE, FIRST} <= inputs.keys():
        return ()
    before, after = (
        localise(object_uri(store.uri, item.uri, item.digest), item.digest, workplace(store))
        for item in (inputs[FIRST], inputs[CANDIDATE])
    )
    return before_and_after(before, after, read_table(curated / HELD_OUT, Problem))


def _gains(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The candidate against the merged model or, if there is none, its first parent, by family."""
    parents = [comparison.parent for comparison in comparisons]
    parent = MERGED if MERGED in parents else parents[0] if parents else ""
    return tuple(
        comparison
        for comparison in comparisons
        if comparison.parent == parent and comparison.suite.startswith(("all", "domain:"))
    )


def _gate(release: Path) -> GateDecision:
    try:
        return GateDecision.model_validate_json((release / GATE_FILE).read_bytes())
    except (OSError, ValidationError) as error:
        raise DataError(f"{release / GATE_FILE} is not a gate's decision: {error}") from error


def _places(
    name: str,
    releases: Sequence[CheckpointRef],
    gate: Sequence[GateDecision],
    store: StoreRef,
) -> dict[str, str]:
    places = {
        "store": store.uri,
        "MLflow": f"mlflow ui --workers 1 --backend-store-uri {store.tracking_uri}",
        "then open": TRAINING_VIEW,
    }
    for release, decision in zip(releases, gate, strict=True):
        places["release" if decision.released else "candidate"] = release.uri
        places |= _registered(name, release, store)
    return places


def _registered(name: str, release: CheckpointRef, store: StoreRef) -> dict[str, str]:
    """Say what the registry answers about a release.

    Raises:
        DataError: it has no version of it.
    """
    try:
        version = Lookup(store.tracking_uri).registered(name, release.statement)
    except EngineError as error:
        return {"registered": f"unknown, MLflow does not answer: {error}"}
    if version is None:
        raise DataError(
            f"MLflow has no version of {name} for {release.uri}. Register it again from the "
            f"statements: {REPAIR} {store.uri}"
        )
    model = f"models:/{name}/{version.number}"
    aliases = ", ".join(f"models:/{name}@{alias}" for alias in sorted(version.aliases))
    return {
        "registered": f"{model}, {aliases or 'no alias'}",
        "audit": f"eachprompt audit --model {model} --store {store.uri}",
        "signed": _signed(store),
    }


def _signed(store: StoreRef) -> str:
    signer = find_signer(store.uri)
    if signer is None:
        return f"by nobody; {KEY_VARIABLE} names no key"
    return (
        f"by key {fingerprint(signer.public)[:16]}; the audit proves it with --key and a copy of "
        f"{public_half()}"
    )
