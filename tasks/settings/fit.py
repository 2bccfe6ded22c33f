"""Whether choices, recipes and engines of settings go together, and the settings that stages take.

The part of the check (check.py) that loads torch.
"""

import logging
from typing import TypeVar

from data_schemas.machine_settings import TrainingEngines
from data_schemas.rl_settings import RLSettings, RouterReplay
from data_schemas.settings import PipelineSettings, RetrainSettings
from tasks.algorithms import phase_choices
from tasks.algorithms.choices import complete
from tasks.algorithms.terms.table import find_terms
from tasks.engines import select
from tasks.errors import SettingsError
from tasks.models.architectures import CODE, Architecture, adopted_code, architecture_of
from tasks.models.model_folder import local_folder, read_config
from tasks.platform import resources
from tasks.plugins import pinned
from tasks.rl.recipe import open_recipe, pinned_source
from tasks.settings.check import engines_of, phases_of

SettingsT = TypeVar("SettingsT", PipelineSettings, RetrainSettings)
logger = logging.getLogger(__name__)


def require_fit(settings: PipelineSettings | RetrainSettings, *, trains: bool) -> None:
    """Refuse choices, recipes and engines that do not go together, or with the base.

    Args:
        settings: of a workflow.
        trains: False if its stages only read rows.

    Raises:
        SettingsError: names the setting.
    """
    complete(settings)
    for name, phase in phases_of(settings):
        try:
            phase_choices.require_fit(phase)
        except SettingsError as error:
            raise SettingsError(f"{name}.{error}") from error
        try:
            open_recipe(phase.recipe, phase)
        except SettingsError as error:
            raise SettingsError(f"{name}.recipe: {error}") from error
    if not trains:
        return
    for name, engines in engines_of(settings):
        try:
            select.require_fit(engines, nodes=resources.NODES, processes=resources.PROCESSES)
        except SettingsError as error:
            raise SettingsError(f"{name}.{error}") from error
    if isinstance(settings, PipelineSettings):
        require_router(fit_to_base(settings))
        require_layers(settings)


def settle(settings: SettingsT) -> SettingsT:
    """Write out what the stages take: choices with their defaults, and the digests of own code.

    A statement and a cache key have all that decides.

    Raises:
        SettingsError: code cannot be loaded, or is not what it is pinned to.
    """
    settled = complete(settings)
    changes = {
        name: phase.model_copy(update={"recipe": pinned_source(phase.recipe)})
        for name, phase in phases_of(settled)
        if phase.recipe is not None
    }
    return pinned(settled.model_copy(update=changes) if changes else settled)


def require_layers(settings: PipelineSettings) -> None:
    """Refuse engines that lack a layer of the base model, before any stage runs.

    Raises:
        SettingsError: names the setting.
    """
    architecture = _base(settings)
    if architecture is None:
        return  # checked as an engine opens it
    for name, engines in engines_of(settings):
        trains = isinstance(engines, TrainingEngines)
        try:
            select.refuse_layers(
                architecture,
                rollout=engines.rollout,
                trainer=engines.trainer if trains else None,
                lora_rank=engines.lora.rank if trains else 0,
            )
        except SettingsError as error:
            raise SettingsError(f"{name}: {settings.base_model}: {error}") from error


def _base(settings: PipelineSettings) -> Architecture | None:
    """Read the base model; None if it is not here, and is checked as it is ingested.

    Raises:
        SettingsError: it is no model directory, or nothing reads its family.
    """
    folder = local_folder(settings.base_model)
    if folder is None or not folder.is_dir():
        return None
    try:
        config = read_config(folder)
    except SettingsError as error:
        raise SettingsError(f"base_model: {error}") from error
    try:
        code = adopted_code(config, settings.architecture)
        return architecture_of({**config, CODE: code} if code else config)
    except SettingsError as error:
        raise SettingsError(f"base_model: {folder}: {error}") from error


def fit_to_base(settings: PipelineSettings) -> PipelineSettings:
    """Switch R3, the default, off in the phases of a dense base: there is nothing to replay."""
    architecture = _base(settings)
    if architecture is None or architecture.routing:
        return settings
    fitted: dict[str, RLSettings] = {}
    for name, phase in phases_of(settings):
        if phase.steps and phase.router_replay is RouterReplay.R3:
            logger.info("%s.router_replay is 'off': the base has no router", name)
            fitted[name] = phase.model_copy(update={"router_replay": RouterReplay.OFF})
    return settings.model_copy(update=fitted)


def require_router(settings: PipelineSettings) -> None:
    """Refuse settings of routers for a dense base model, before any stage runs.

    Raises:
        SettingsError: a phase replays routes or has router losses, but the base has no router.
    """
    architecture = _base(settings)
    if architecture is None or architecture.routing:
        return
    for name, phase in phases_of(settings):
        if not phase.steps:
            continue
        for field, value, off in (
            ("router_replay", phase.router_replay.value, RouterReplay.OFF.value),
            ("engines.mismatch.routes", phase.engines.mismatch.routes, False),
        ):
            if value != off:
                raise SettingsError(
                    f"{name}.{field} is {value!r}, but {settings.base_model} is a dense model "
                    f"without a router; set it to {off!r}"
                )
        for one, term in zip(phase.terms, find_terms(phase.terms), strict=True):
            if term.needs_router:
                raise SettingsError(
                    f"{name}.terms has {one.kind!r}, but {settings.base_model} is a dense model "
                    "without a router; leave it out"
                )
