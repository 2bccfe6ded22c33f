"""Flyte tasks of stage 0: copy a base model into the store, or pretrain one."""

import logging
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from data_schemas.artifacts import (
    CandidateRef,
    CheckpointRef,
    Context,
    is_address,
)
from data_schemas.frozen_model import FrozenModel
from data_schemas.references import Named
from data_schemas.rows import Parent
from data_schemas.settings import (
    ChatSettings,
    PipelineSettings,
    PretrainSettings,
    RetrainSettings,
    SFTSettings,
)
from tasks.errors import SettingsError
from tasks.models.architectures import adopted_code, code_of, config_in, is_part_of_project
from tasks.models.model_folder import (
    check_guard_folder,
    check_model_folder,
    check_weights_folder,
    read_by,
    with_chat,
    with_code,
)
from tasks.models.weights import check_tensors, remove_pickles, separate_experts
from tasks.platform.shell import shell
from tasks.provenance.lineage.base_model import Origin, find_base
from tasks.stages.runner import Facts, Inputs, Outputs, Record, Work, run
from tasks.store.manifest import copy_folder
from tasks.training.foundation import base, pretraining
from tasks.training.foundation.candidates import in_precisions, parse_candidates
from tasks.training.foundation.named_models import ENCODER, GUARD, SCREEN, replace_models

logger = logging.getLogger(__name__)
_CHECKS = {SCREEN: check_tensors, GUARD: check_guard_folder, ENCODER: check_weights_folder}
"""Checks of models that are not the policy's kind, by role."""


_PLAIN = ChatSettings()


class BaseModelSource(FrozenModel):
    """Origin of a base model, as recorded in the statement."""

    path: str
    architecture: Named = ""
    chat: ChatSettings = ChatSettings()


@shell("ingest_base")
def ingest_base(
    path: str,
    name: str,
    context: Context,
    architecture: str = "",
    chat: ChatSettings = _PLAIN,
) -> CheckpointRef:
    """Check a base model and copy it into the store, as a root of the lineage.

    Args:
        path: Hugging Face directory, s3:// prefix or registered model (models:/NAME@alias); ''
            for the shipped tiny mixture of experts.
        name: role in the workflow: 'base', 'candidate'.
        context: of the run.
        architecture: code that opens it if its family is not built in.
        chat: arguments of its chat template, which the copy has by default.
    """
    return _ingest(path, name, context, architecture=architecture, chat=chat)


class Starts(NamedTuple):
    """What each fine-tuning begins with."""

    reasoning: CheckpointRef
    commerce: CheckpointRef


@shell("ingest_parents")
def ingest_parents(settings: SFTSettings, base: CheckpointRef, context: Context) -> Starts:
    """Check and copy the existing models among the parents of the merge; others start at the base.

    Not part of the fine-tuning, whose result is cached: a folder or an alias may have new content.

    Args:
        settings: `parents`.
        base: of the parents that are fine-tuned.
        context: of the run.
    """
    existing = {
        parent: _ingest_parent(parent, path, context) for parent, path in settings.parents.items()
    }
    return Starts(
        reasoning=existing.get(Parent.REASONING, base), commerce=existing.get(Parent.COMMERCE, base)
    )


def _ingest_parent(parent: Parent, path: str, context: Context) -> CheckpointRef:
    try:
        return _ingest(path, parent.value, context)
    except SettingsError as error:
        raise SettingsError(f"sft.parents.{parent.value}: {error}") from error


@shell("ingest_candidates")
def ingest_candidates(
    models: str,
    context: Context,
    architecture: str = "",
    chat: ChatSettings = _PLAIN,
    precision: str = "",
) -> list[CandidateRef]:
    """Check and copy the models of an evaluation into the store; endpoints are only named.

    Args:
        models: 'address,name=address'; an endpoint is http://host/v1#served-name.
        context: of the run.
        architecture: code that opens those whose family is not built in.
        chat: arguments of chat templates, for those that read them.
        precision: 'bf16,int8': in which each is evaluated, too; it was checked.
    """
    ingest = partial(
        _ingest, context=context, architecture=architecture, chat=chat, is_candidate=True
    )
    candidates = parse_candidates(models)
    for one in candidates:
        if one.served_as and chat.arguments:
            _say_without_effect(one.address, chat.arguments, "its server renders the chat")
    found = [
        one
        if one.served_as
        else one.model_copy(
            # One called base is not the base model that the run has beside it.
            update={"model": ingest(one.address, f"model/{one.name}")}
        )
        for one in candidates
    ]
    return in_precisions(found, [word.strip() for word in precision.split(",") if precision])


def _say_without_effect(address: str, arguments: Iterable[str], reason: str) -> None:
    if names := ", ".join(arguments):
        logger.warning("chat.arguments: %s has no effect on %s: %s", names, address, reason)


@shell("ingest_models")
def ingest_models(settings: PipelineSettings, context: Context) -> PipelineSettings:
    """Copy the models that settings name into the store; the settings then name the copies.

    Not part of the stages that use them, whose results are cached: a folder may have new content.

    Args:
        settings: judges, guard and encoder of kind 'model', and `grading.screen_model`.
        context: of the run.
    """
    return replace_models(settings, _ingest_into(context))


@shell("ingest_retrain_models")
def ingest_retrain_models(settings: RetrainSettings, context: Context) -> RetrainSettings:
    """Do the same as `ingest_models` for the settings of a retraining."""
    return replace_models(settings, _ingest_into(context))


def _ingest_into(context: Context) -> Callable[[str, str], str]:
    @cache  # several stages may name the same judge
    def ingest(role: str, address: str) -> str:
        if is_address(address):
            return address
        check = _CHECKS.get(role, check_model_folder)
        return _ingest(address, role, context, check).address

    return ingest


def _ingest(
    path: str,
    name: str,
    context: Context,
    check: Callable[[Path], None] = check_model_folder,
    architecture: str = "",
    chat: ChatSettings = _PLAIN,
    is_candidate: bool = False,
) -> CheckpointRef:
    origin = find_base(path, context.store)
    own = _code_of(origin, architecture)
    if is_candidate:  # of others, whose templates need not be of the base's kind
        read = read_by(origin.folder, chat)
        unread = [name for name in chat.arguments if name not in read.arguments]
        _say_without_effect(
            path or str(origin.folder), unread, "its chat template does not read it"
        )
        chat = read
    with with_code(origin.folder, own) as coded, with_chat(coded, chat) as folder:
        check(folder)
        base.check_finite(folder)
        source = BaseModelSource(path=path, architecture=own, chat=chat)
        return run(INGEST_MODEL, source, {}, context, [origin, folder], name=f"ingest/{name}")


def _copy(
    _: BaseModelSource, __: Inputs, outputs: Outputs, work: Work, origin: Origin, folder: Path
) -> Facts:
    origin.record(work.entry)
    copy_folder(folder, outputs["model"])
    facts = dict[str, float | int | str]()
    if pickles := remove_pickles(outputs["model"]):
        facts["left_out"] = f"{', '.join(pickles)}: opening them may execute code"
        logger.warning("%s: left out %s", folder, facts["left_out"])
    if separate_experts(outputs["model"]):
        facts["experts"] = "one tensor each; the folder has one for all of a layer"
    return facts


INGEST_MODEL = Record("ingest_base", _copy, CheckpointRef, "model")


def _code_of(origin: Origin, architecture: str) -> str:
    """Return the code that opens a model, pinned; '' if its family is built in."""
    config = config_in(origin.folder)
    own = code_of(config)
    if origin.ref is not None and own and not architecture and not is_part_of_project(own):
        return own  # it went through this door before
    try:
        return adopted_code(config, architecture)
    except SettingsError as error:
        raise SettingsError(f"{origin.folder}: {error}") from error


def _pretrain(settings: PretrainSettings, _: Inputs, outputs: Outputs, __: Work) -> Facts:
    return pretraining.pretrain(settings, outputs["model"])


PRETRAIN = Record("pretrain", _pretrain, CheckpointRef, "model")


@shell("pretrain")
def pretrain(settings: PretrainSettings, context: Context) -> CheckpointRef:
    """Train the tiny base model and its tokenizer from scratch."""
    return run(PRETRAIN, settings, {}, context)
