"""Convert command line options to settings."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from data_schemas.rl_settings import JudgeKind, RouterReplay
from data_schemas.settings import PipelineSettings, Source
from tasks.errors import SettingsError
from tasks.interchange.model_folder import has_router

EXAMPLE = "--sources gsm8k=data/train.jsonl,ae110k=data/ae110k"


def parse_sources(text: str) -> tuple[Source, ...]:
    """Parse 'adapter=path,adapter=path'; 'sample_world' needs no path.

    Raises:
        SettingsError: an entry does not have that form.
    """
    sources: list[Source] = []
    for entry in text.split(","):
        adapter, equals, path = (part.strip() for part in entry.partition("="))
        if not adapter or (equals and not path):
            raise SettingsError(
                f"--sources: {entry.strip()!r} is not adapter=path. Example: {EXAMPLE}"
            )
        sources.append(Source(adapter=adapter, path=path))
    return tuple(sources)


def with_sources(settings: PipelineSettings, sources: str) -> PipelineSettings:
    """Replace the sources of curation, unless `sources` is empty."""
    if not sources.strip():
        return settings
    curation = settings.curation.model_copy(update={"sources": parse_sources(sources)})
    return settings.model_copy(update={"curation": curation})


def require_folders(settings: PipelineSettings) -> None:
    """Refuse settings whose model folders are missing, before any stage runs.

    Raises:
        SettingsError: a folder is missing; the message names the setting.
    """
    for name, path in _model_folders(settings):
        if not Path(path).expanduser().is_dir():
            raise SettingsError(f"{name}: {path} is not a folder. Set it to a model directory.")


def require_router(settings: PipelineSettings) -> None:
    """Refuse settings of routers for a dense base model, before any stage runs.

    Raises:
        SettingsError: a phase replays routes or has router losses, but the base has no router.
    """
    if not settings.base_model or has_router(Path(settings.base_model).expanduser()):
        return
    for name, phase in (("rl_one", settings.rl_one), ("rl_two", settings.rl_two)):
        auxiliary = phase.loss.auxiliary
        for field, value, off in (
            ("router_replay", phase.router_replay.value, RouterReplay.OFF.value),
            ("loss.auxiliary.balance", auxiliary.balance, 0.0),
            ("loss.auxiliary.router_z", auxiliary.router_z, 0.0),
        ):
            if value != off:
                raise SettingsError(
                    f"{name}.{field} is {value!r}, but {settings.base_model} is a dense model "
                    f"without a router; set it to {off!r}"
                )


def _model_folders(settings: PipelineSettings) -> Iterator[tuple[str, str]]:
    if settings.grading.screen_model:
        yield "grading.screen_model", settings.grading.screen_model
    for name, judge in (
        ("grading.judge", settings.grading.judge),
        ("rl_one.rewards.judge", settings.rl_one.rewards.judge),
        ("rl_two.rewards.judge", settings.rl_two.rewards.judge),
        ("evaluation.judge", settings.evaluation.judge),
    ):
        if judge.kind is JudgeKind.MODEL:
            yield f"{name}.address", judge.address


def with_seed(settings: PipelineSettings, seed: int) -> PipelineSettings:
    """Set the seed of every stage that has one."""
    seeded = {
        name: stage.model_copy(update={"seed": seed})
        for name, stage in settings
        if isinstance(stage, BaseModel) and "seed" in type(stage).model_fields
    }
    return settings.model_copy(update=seeded)
