"""Flyte tasks at the start of every workflow: the command line, the store, the execution."""

import os
import shutil
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

import psutil

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    Execution,
    StoreRef,
    is_address,
)
from data_schemas.intake import Intake
from data_schemas.laptop_recipes import RECIPES, has_judge, scaled
from data_schemas.machine_settings import Precision, RolloutKind, TrainerKind
from data_schemas.settings import PipelineSettings, RetrainSettings
from tasks.capacity import machine_needs
from tasks.capacity.model_shape import shape_of
from tasks.errors import DataError, SettingsError
from tasks.models.model_folder import REGISTERED, local_folder, read_config
from tasks.platform.literals import KeyedStore
from tasks.platform.local_execution import at_end
from tasks.platform.log_lines import in_pod
from tasks.platform.progress import say
from tasks.platform.shell import shell
from tasks.provenance.lineage.closing import lease_of
from tasks.provenance.lineage.connection import check_tracking_uri, require_access
from tasks.provenance.lineage.mark import require_mark
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.lineage.shipping import begin, close, end, finish
from tasks.provenance.lineage.signatures.keys import find_signer
from tasks.retraining import inbox, outcome, processed, worth
from tasks.retraining.released import find_released
from tasks.settings import fit, options
from tasks.settings.check import check, model_folders, require_remote_model
from tasks.stages.failure import report_ended
from tasks.store import location
from tasks.store.copies import S3
from tasks.store.interface import store_at
from tasks.store.lease import lease
from tasks.training.foundation.candidates import parse_candidates, parse_precisions

_ENDPOINT = ("http://", "https://")
SettingsT = TypeVar("SettingsT", PipelineSettings, RetrainSettings)


class RetrainingStart(NamedTuple):
    """Start of a retraining."""

    settings: RetrainSettings
    store: KeyedStore
    execution: Execution
    model: CheckpointRef
    release: str
    """Statement of the released version, which the result is to replace."""
    known: list[DatasetRef]
    held_out: DatasetRef
    is_news: bool
    message: str
    """How the night ends without news; '' otherwise."""


@shell("check_settings")
def check_settings(
    settings: PipelineSettings,
    store: str = "",
    sources: str = "",
    suites: str = "",
    base_model: str = "",
    release: str = "",
    model: str = "",
    teacher: str = "",
    precision: str = "",
) -> PipelineSettings:
    """Add the inputs of the command line to the settings, and refuse settings that cannot run.

    Engines must be installed, the number of processes must fit the layout of every stage,
    models must be complete and long enough, and sources must be there, in S3 and MLflow as well.

    Args:
        settings: of the workflow.
        store: folder or s3:// prefix, in which registered models were released.
        sources: 'adapter=path,adapter=path', or '' to keep those of the settings.
        suites: 'name=path,name=path', benchmarks instead of all sources; '' for none.
        base_model: in place of that of the settings, unless empty.
        release: name of the registered model, likewise.
        model: models that are evaluated, as 'address,name=address'; '' for none.
        teacher: a model or endpoint that demonstrates; '' for none.
        precision: 'bf16,int8', in which the model is evaluated as well; '' for none.
    """
    inputs = {"sources": sources, "suites": suites, "base_model": base_model}
    settings = options.with_name(options.with_inputs(settings, **inputs), release)
    check(settings)
    if not in_pod():  # this pod is not the machine that trains
        _say_needs(settings)
    settings = options.with_room(fit.fit_to_base(settings))
    require_access(os.environ.get("MLFLOW_TRACKING_URI", ""), settings.release.name)
    candidates = parse_candidates(model) if model or precision else []
    parse_precisions(precision, candidates, settings.evaluation.engines)
    asked = [("--model", one.address) for one in candidates if not one.served_as]
    asked += [("--teacher", teacher)] if not teacher.startswith(_ENDPOINT) else []
    _require_models([("base_model", settings.base_model), *_models_of(settings), *asked], store)
    return fit.settle(settings)


def _models_of(settings: PipelineSettings | RetrainSettings) -> list[tuple[str, str]]:
    return [(name, path) for name, path, _ in model_folders(settings)]


def _require_models(models: Iterable[tuple[str, str]], store: str) -> None:
    """Refuse a model that is not where it is said to be, or may not be read, before it is copied.

    Args:
        models: name of the setting, and address: a folder, s3:// or models:/.
        store: folder or s3:// prefix, in which registered models were released.

    Raises:
        SettingsError: names the setting.
    """
    uri = location.absolute_store(store) if store else ""
    for name, path in models:
        try:
            if path.startswith(REGISTERED) and uri:
                tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
                require_remote_model(find_release(path, uri, tracking).folder.uri)
            elif path.startswith(S3):
                require_remote_model(path)
            elif path and not is_address(path) and (folder := local_folder(path)) is not None:
                read_config(folder)
        except (DataError, SettingsError) as error:
            raise SettingsError(f"{name}: {error}") from error


def _say_needs(settings: PipelineSettings) -> None:
    """Say what training in this process takes of this machine, before anything is read."""
    base = local_folder(settings.base_model)
    groups = {name: getattr(settings, name).engines for name in ("sft", "rl_one", "rl_two")}
    engines = [one for one in groups.values() if one.trainer is TrainerKind.TORCH]
    if base is None or not base.is_dir() or not engines:
        return
    try:
        shape = shape_of(read_config(base))
    except DataError:  # of a family that is read by code of its own
        return
    tokens = max(one.layout.micro_batch_tokens for one in engines)
    needed = machine_needs.needs(shape, tokens)
    free = psutil.virtual_memory().available, shutil.disk_usage(Path.cwd()).free
    groups |= {name: getattr(settings, name).engines for name in ("grading", "evaluation")}
    bf16 = [
        f"{name}.engines.precision"
        for name, one in groups.items()
        if one.rollout is RolloutKind.HF and one.precision is Precision.BF16
    ]
    threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    lines = machine_needs.notes(needed, tokens, *free)
    if lines:  # a small model is fast enough in any case
        lines += machine_needs.slow_choices(bf16, machine_needs.processor_flags(), threads)
    for line in lines:
        say(line)


@shell("with_sources")
def with_sources(settings: PipelineSettings, sources: str) -> PipelineSettings:
    """Add the sources of the command line to the settings of a workflow that trains nothing.

    Args:
        settings: of the workflow.
        sources: 'adapter=path,adapter=path', or '' to keep those of the settings.
    """
    settings = options.with_inputs(settings, sources=sources)
    check(settings, trains=False)
    return fit.settle(options.with_room(settings))


@shell("open_night")
def open_night(
    settings: RetrainSettings, from_inbox: str, model: str, store: str
) -> RetrainingStart:
    """Open the store, find the released model, and look whether the inbox has a new file.

    Without one the night ends here: this pod is small, and nothing else has started.

    Args:
        settings: of the workflow; those that cannot run are refused, as `check_settings` does.
        from_inbox: replaces `inbox` of the settings, unless empty.
        model: replaces `release.name` of the settings, unless empty.
        store: folder or s3:// prefix.
    """
    check(settings)
    settings = outcome.with_inputs(fit.settle(settings), from_inbox, model)
    opened = _open(store, "retrain", ("night_page",), settings.release.name)
    released = find_released(settings.release.name, opened.store.tracking_uri, opened.store.uri)
    _require_models(_models_of(settings), opened.store.uri)
    listing = inbox.list_files(settings.inbox)
    history = processed.load(opened.store.uri, settings.inbox)
    is_news = bool(processed.select(history, listing.files))
    nothing = Intake(inbox=settings.inbox, files=(), left=dict(listing.reasons))
    decision = worth.decide_reading(nothing, processed.waiting(history, listing.files))
    return RetrainingStart(
        settings=settings,
        store=opened.store,
        execution=opened.execution,
        model=released.model,
        release=released.statement,
        known=list(released.curated),
        held_out=released.held_out,
        is_news=is_news,
        message="" if is_news else f"Not retrained: {decision.reason}.",
    )


@shell("with_seed")
def with_seed(settings: PipelineSettings, seed: int) -> PipelineSettings:
    """Set the seed of every stage that has one."""
    return options.with_seed(settings, seed)


@shell("needs_judge")
def needs_judge(name: str) -> bool:
    """Look up whether a paper's recipe is rewarded by a judge."""
    return has_judge(_recipe(name))


@shell("scaled_recipe")
def scaled_recipe(name: str, judge: CheckpointRef | None = None) -> PipelineSettings:
    """Look up a paper's recipe at the size of the tiny model.

    Args:
        name: of the recipe.
        judge: in place of the recipe's; None for no judge.
    """
    return scaled(_recipe(name), judge.address if judge else "")


def _recipe(name: str) -> PipelineSettings:
    if name not in RECIPES:
        raise SettingsError(f"there is no recipe {name!r}; choose from {', '.join(RECIPES)}")
    return RECIPES[name]


@shell("open_store")
def open_store(store: str, workflow: str, last: str = "") -> Context:
    """Create the store if it does not exist, and name this execution of the workflow.

    Runs in MLflow of earlier executions that ended without a word are closed.

    Args:
        store: folder or s3:// prefix.
        workflow: its name: 'post_training', 'retrain' ...
        last: tasks after which it is over, joined by commas: those that no other task follows, if
            none of them is cached, and `end_execution` otherwise; '' = it is over when none of
            its stages runs.
    """
    return _open(store, workflow, tuple(last.split(",")) if last else ())


@shell("end_execution")
def end_execution(context: Context, results: list[str]) -> None:
    """Say in MLflow that an execution is over whose last stages may come from the cache.

    Args:
        context: of the execution, which names this task as its last one.
        results: locations of what no other stage of it reads, so that all of it is done before.
    """
    end(context, "end_execution")


def _open(store: str, workflow: str, last: tuple[str, ...], model: str = "") -> Context:
    uri = location.absolute_store(store)
    tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
    check_tracking_uri(tracking)
    require_access(tracking, model)
    find_signer(uri)  # a key that cannot sign is refused before any work
    # On a cluster, Flyte names the execution; locally there is no name.
    name = os.environ.get("FLYTE_INTERNAL_EXECUTION_ID") or time.strftime("%Y%m%d-%H%M%S")
    opened = Context(
        store=StoreRef(uri=uri, id=store_at(uri).open(), tracking_uri=tracking),
        execution=Execution(
            id=f"{name}-{uuid.uuid4().hex[:6]}",
            started=time.time(),
            workflow=workflow,
            last=last,
        ),
    )
    # A mark that is not that of the store would be noticed at the end of the first stage.
    require_mark(uri)
    report_ended(opened.store, opened.execution.id)
    _watch(opened)
    begin(opened)
    return opened


def _watch(context: Context) -> None:
    """Say in MLflow how an execution on this machine ended; its lease tells others that it runs."""
    stack = at_end()
    if stack is None:
        return
    execution = context.execution.id
    stack.enter_context(lease(str(lease_of(context.store, execution)), execution))

    def end(_: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            close(context, error)
        elif not context.execution.last:
            finish(context)

    stack.push(end)
