"""Curate sources without training on them, and write one page of what became of every row.

pyflyte run workflows/curate.py curate --sources gsm8k=train.jsonl,evaluation:mgsm=mgsm
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import DatasetRef
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.stages.chain import link, wire
from tasks.stages.opening import with_sources
from tasks.stages.pages import curation_page
from workflows.parts.chain import PREPARATION, opening


class CurationOutputs(NamedTuple):
    """What curation leaves behind."""

    curated: DatasetRef
    page: str


CHAIN = (
    link("checked", with_sources, "settings", "sources"),
    *opening("curate", last="curation_page")[1:],
    *PREPARATION,
    link("page", curation_page, "curated", "context"),
)


@entry_point
def curate(
    settings: PipelineSettings = presets.CPU_SMOKE, store: str = "runs", sources: str = ""
) -> CurationOutputs:
    """Read, clean, deduplicate and decontaminate sources.

    Args:
        settings: only base_model, whose tokenizer measures lengths, and curation matter here.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        curated: problems, demonstrations, held-out problems and what was left out.
        page: funnel, copies, overlaps, lengths and samples of the set as one HTML page.
    """
    rows = wire(CHAIN, settings=settings, store=store, sources=sources)
    return CurationOutputs(curated=rows["curated"], page=rows["page"])
