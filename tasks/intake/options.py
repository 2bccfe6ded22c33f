"""What people type on the command line, turned into settings."""

from pydantic import BaseModel

from data_schemas.settings import PipelineSettings, Source
from tasks.errors import SettingsError

EXAMPLE = "--sources gsm8k=data/train.jsonl,ae110k=data/ae110k"


def parse_sources(text: str) -> tuple[Source, ...]:
    """Read 'adapter=path,adapter=path'; a bare 'sample_world' is the generated one.

    Raises:
        SettingsError: an entry is not of that form.
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


def with_seed(settings: PipelineSettings, seed: int) -> PipelineSettings:
    """Give every stage that draws something this seed."""
    seeded = {
        name: stage.model_copy(update={"seed": seed})
        for name, stage in settings
        if isinstance(stage, BaseModel) and "seed" in type(stage).model_fields
    }
    return settings.model_copy(update=seeded)
