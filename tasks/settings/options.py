"""Convert command line options to settings."""

import logging
import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from data_schemas.artifacts import is_address
from data_schemas.faults import explain
from data_schemas.machine_settings import MachineSettings, TrainingEngines
from data_schemas.rl_settings import RLSettings, RouterReplay
from data_schemas.settings import PipelineSettings, ReleaseSettings, RetrainSettings
from tasks.algorithms.choices import complete
from tasks.algorithms.phase_choices import require_fit
from tasks.algorithms.terms.table import find_terms
from tasks.engines import select
from tasks.errors import DataError, SettingsError
from tasks.models.architectures import (
    CODE,
    Architecture,
    adopted_code,
    architecture_of,
    refuse_foreign_code,
)
from tasks.models.model_folder import (
    REGISTERED,
    local_folder,
    read_config,
)
from tasks.plugins import pinned
from tasks.provenance.lineage.lookup import parse_model_uri
from tasks.settings.early import (
    ANSWERING,
    model_folders,
    parse_sources,
    positions_of,
    require_places,
)
from tasks.settings.groups import expand

SettingsT = TypeVar("SettingsT", PipelineSettings, RetrainSettings)
logger = logging.getLogger(__name__)
OWN = "eachprompt-"
"""Begins the name of a release that nobody named."""
LONGEST_PROMPT = 2**20
"""Tokens of a prompt of a benchmark."""


def with_room(settings: PipelineSettings) -> PipelineSettings:
    """Let rows of files be as long as the base has positions, unless the settings say how long.

    The defaults are sizes of the sample world, which a table of another language or shop exceeds.
    """
    limits, base = settings.curation, local_folder(settings.base_model)
    default = type(limits)()
    sizes = {name: getattr(limits, name) for name in ("max_prompt_tokens", "max_response_tokens")}
    is_default = all(value == getattr(default, name) for name, value in sizes.items())
    if not is_default or not any(source.path for source in limits.sources):
        return settings
    positions = None if base is None or not base.is_dir() else positions_of(base)
    if positions is None:
        return settings
    longest = max(getattr(settings, name).max_new_tokens for name in ANSWERING)
    response = max(longest, default.max_response_tokens, positions // 4)
    prompt = positions - response
    if prompt <= default.max_prompt_tokens:
        return settings
    logger.warning(
        "curation: prompts of up to %d tokens and responses of up to %d, of the %d positions of "
        "the base; max_prompt_tokens and max_response_tokens set other limits",
        *(prompt, response, positions),
    )
    room = {"max_prompt_tokens": prompt, "max_response_tokens": response}
    return settings.model_copy(update={"curation": limits.model_copy(update=room)})


def with_names(settings: PipelineSettings, base_model: str, release: str) -> PipelineSettings:
    """Replace the base model and the name of the registered model, each unless empty.

    A release that nobody named is named after a base of one's own.

    Raises:
        SettingsError: the registry takes no such name.
    """
    if base_model:
        settings = settings.model_copy(update={"base_model": base_model})
    if not release and settings.base_model and settings.release == ReleaseSettings():
        release = f"{OWN}{_name_of(settings.base_model)}"
        logger.warning("release.name is %s, after the base model", release)
    if not release:
        return settings
    try:
        values = ReleaseSettings.model_validate(settings.release.model_dump() | {"name": release})
    except ValidationError as error:
        raise SettingsError(f"--release: {explain(error, ReleaseSettings)}") from error
    return settings.model_copy(update={"release": values})


def _name_of(base: str) -> str:
    """Return the last part of a model's place, in letters that a registry takes."""
    model = base.removeprefix(REGISTERED).partition("@")[0].rstrip("/")
    parts = [part for part in model.split("/") if part and not part.isdecimal()]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", parts[-1] if parts else "base").strip("-.")[:180]


def with_suites(settings: PipelineSettings, suites: str) -> PipelineSettings:
    """Read benchmarks instead of the sources of curation, unless `suites` is empty.

    No prompt is too long for a benchmark unless the settings set another limit.

    Raises:
        SettingsError: an entry is not name=path, or a group cannot be read.
    """
    if not suites.strip():
        return settings
    parsed = parse_sources(suites, "--suites")
    curation = settings.curation
    update: dict[str, object] = {
        "sources": expand(one.model_copy(update={"evaluation": True}) for one in parsed)
    }
    if curation.max_prompt_tokens == type(curation)().max_prompt_tokens:
        update["max_prompt_tokens"] = LONGEST_PROMPT
    return settings.model_copy(update={"curation": curation.model_copy(update=update)})


def with_own_code(settings: SettingsT) -> SettingsT:
    """Complete the choices of settings, pin the code of a user's own, and check each phase.

    Settings by default are written out: a statement and a cache key have all that decides.

    Raises:
        SettingsError: names the setting.
    """
    settings = complete(settings)
    for name, phase in settings:
        if isinstance(phase, RLSettings):
            try:
                require_fit(phase)
            except SettingsError as error:
                raise SettingsError(f"{name}.{error}") from error
    return pinned(settings)


def require_folders(settings: PipelineSettings | RetrainSettings) -> None:
    """Refuse settings that name a judge, guard, encoder or screen model that cannot be opened.

    Raises:
        SettingsError: names the setting.
    """
    require_places(settings)
    for name, path, check in model_folders(settings):
        folder = None if is_address(path) else local_folder(path)
        try:
            if folder is not None:
                refuse_foreign_code(folder)
                check(folder)
            elif path.startswith(REGISTERED):
                parse_model_uri(path)  # the model itself is checked as it is ingested
        except (SettingsError, DataError) as error:
            raise SettingsError(f"{name}: {error}") from error


def require_layers(settings: PipelineSettings) -> None:
    """Refuse engines that lack a layer of the base model, before any stage runs.

    Raises:
        SettingsError: names the setting.
    """
    architecture = _base(settings)
    if architecture is None:
        return  # checked as an engine opens it
    for name in ("sft", "general_sft", "grading", "rl_one", "rl_two", "evaluation"):
        engines: MachineSettings = getattr(settings, name).engines
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
    config = read_config(folder)
    try:
        code = adopted_code(config, settings.architecture)
        return architecture_of({**config, CODE: code} if code else config)
    except SettingsError as error:
        raise SettingsError(f"{folder}: {error}") from error


def fit_to_base(settings: PipelineSettings) -> PipelineSettings:
    """Switch R3, the default, off in the phases of a dense base: there is nothing to replay."""
    architecture = _base(settings)
    if architecture is None or architecture.routing:
        return settings
    fitted = settings
    for name in ("rl_one", "rl_two"):
        phase = getattr(settings, name)
        if phase.steps and phase.router_replay is RouterReplay.R3:
            logger.info("%s.router_replay is 'off': the base has no router", name)
            phase = phase.model_copy(update={"router_replay": RouterReplay.OFF})
            fitted = fitted.model_copy(update={name: phase})
    return fitted


def require_router(settings: PipelineSettings) -> None:
    """Refuse settings of routers for a dense base model, before any stage runs.

    Raises:
        SettingsError: a phase replays routes or has router losses, but the base has no router.
    """
    architecture = _base(settings)
    if architecture is None or architecture.routing:
        return
    for name, phase in (("rl_one", settings.rl_one), ("rl_two", settings.rl_two)):
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


def with_seed(settings: PipelineSettings, seed: int) -> PipelineSettings:
    """Set the seed of every stage that has one, and name the model after it.

    Every seed holds out other problems, so its model can replace that of no other seed.
    """
    seeded: dict[str, BaseModel] = {
        name: stage.model_copy(update={"seed": seed})
        for name, stage in settings
        if isinstance(stage, BaseModel) and "seed" in type(stage).model_fields
    }
    update = {"name": f"{settings.release.name[:180]}-seed-{seed}"}
    release = settings.release.model_copy(update=update)
    return settings.model_copy(update={**seeded, "release": release})
