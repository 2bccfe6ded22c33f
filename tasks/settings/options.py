"""Settings as the command line changes them: sources, suites, base model, name, room, seed.

Nothing that this module imports may load torch, transformers or flytekit.
"""

import logging
import re

from pydantic import BaseModel, ValidationError

from data_schemas.faults import explain
from data_schemas.settings import PipelineSettings, ReleaseSettings, Source
from tasks.errors import SettingsError
from tasks.models.model_folder import REGISTERED, local_folder, positions_of
from tasks.settings.groups import expand

logger = logging.getLogger(__name__)
OWN = "eachprompt-"
"""Begins the name of a release that nobody named."""
LONGEST_PROMPT = 2**20
"""Tokens of a prompt of a benchmark."""
ANSWERING = ("grading", "rl_one", "rl_two", "evaluation")
"""Groups of settings whose stages let the model answer prompts."""
EXAMPLE = "--sources gsm8k=data/train.jsonl,ae110k=data/ae110k"
BENCHMARK = "evaluation:"
"""In front of an adapter: its rows are only evaluated with."""


def with_inputs(
    settings: PipelineSettings, *, sources: str = "", suites: str = "", base_model: str = ""
) -> PipelineSettings:
    """Put inputs of the command line in place of what the settings say, each unless empty.

    Args:
        settings: of the workflow.
        sources: 'adapter=path,adapter=path'.
        suites: 'name=path,name=path', benchmarks instead of all sources.
        base_model: folder, address or registered model.

    Raises:
        SettingsError: an entry is not of that form, or a group of suites cannot be read.
    """
    if base_model:
        settings = settings.model_copy(update={"base_model": base_model})
    return with_suites(with_sources(settings, sources), suites)


def with_sources(settings: PipelineSettings, sources: str) -> PipelineSettings:
    """Replace the sources of curation, unless `sources` is empty, and groups of suites in them.

    Raises:
        SettingsError: an entry is not adapter=path, or a group cannot be read.
    """
    parsed = parse_sources(sources) if sources.strip() else settings.curation.sources
    all_sources = expand(parsed)
    if all_sources == settings.curation.sources:
        return settings
    curation = settings.curation.model_copy(update={"sources": all_sources})
    return settings.model_copy(update={"curation": curation})


def parse_sources(text: str, option: str = "--sources") -> tuple[Source, ...]:
    """Parse 'adapter=path,evaluation:adapter=path'; 'sample_world' needs no path.

    Raises:
        SettingsError: an entry does not have that form.
    """
    sources: list[Source] = []
    for entry in text.split(","):
        adapter, equals, path = (part.strip() for part in entry.partition("="))
        if not adapter or (equals and not path):
            raise SettingsError(
                f"{option}: {entry.strip()!r} is not adapter=path. Example: {EXAMPLE}"
            )
        name = adapter.removeprefix(BENCHMARK)
        sources.append(Source(adapter=name, path=path, evaluation=name != adapter))
    return tuple(sources)


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


def with_name(settings: PipelineSettings, release: str) -> PipelineSettings:
    """Replace the name of the registered model, unless it is empty.

    A release that nobody named is named after a base of one's own.

    Raises:
        SettingsError: the registry takes no such name.
    """
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
