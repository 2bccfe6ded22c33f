"""Curate sources without training on them, and write one page of what became of every row.

pyflyte run workflows/curate.py curate --sources gsm8k=train.jsonl,evaluation:mgsm=mgsm
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import DatasetRef
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.stages.foundation import ingest_models
from tasks.stages.opening import open_store, with_sources
from tasks.stages.pages import curation_page
from workflows.parts.preparation import preparation


class Curated(NamedTuple):
    """What curation leaves behind."""

    curated: DatasetRef
    page: str


@entry_point
def curate(
    settings: PipelineSettings = presets.CPU_SMOKE, store: str = "runs", sources: str = ""
) -> Curated:
    """Read, clean, deduplicate and decontaminate sources.

    Args:
        settings: only base_model, whose tokenizer measures lengths, and curation matter here.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        curated: problems, demonstrations, held-out problems and what was left out.
        page: funnel, copies, overlaps, lengths and samples of the set as one HTML page.
    """
    complete = with_sources(settings=settings, sources=sources)
    context = open_store(store=store, workflow="curate", last="curation_page")
    with_models = ingest_models(settings=complete, context=context)
    rows = preparation(settings=with_models, context=context)
    page = curation_page(curated=rows.curated, context=context)
    return Curated(curated=rows.curated, page=page)
