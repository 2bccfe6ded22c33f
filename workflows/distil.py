"""Let a teacher answer the problems, and keep its right answers as demonstrations.

    pyflyte run workflows/distil.py distil --teacher path/to/model --keep 2
    pyflyte run workflows/distil.py distil --teacher http://host:8000/v1 --served_as my-model

The folder of the result is a source: --sources prompt_jsonl=FOLDER,...
"""

from data_schemas import presets
from data_schemas.artifacts import DatasetRef
from data_schemas.machine_settings import Positive
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.stages.chain import link, wire
from tasks.stages.curation import distil as sample
from workflows.parts.chain import PREPARATION, opening

CHAIN = (
    *opening("distil", "sources", "teacher", last="distil"),
    *PREPARATION,
    link(
        "demonstrations",
        sample,
        *("teacher", "served_as", "keep", "curated", "context"),
        settings="models.grading",
    ),
)


@entry_point
def distil(
    teacher: str,
    served_as: str = "",
    keep: Positive = 1,
    settings: PipelineSettings = presets.CPU_SMOKE,
    store: str = "runs",
    sources: str = "",
) -> DatasetRef:
    """Sample a teacher on the curated problems and keep what the verifiers accept.

    Args:
        teacher: model directory, s3:// prefix, models:/NAME@alias, or base URL of an
            OpenAI-compatible endpoint, which answers each problem once.
        served_as: name under which the endpoint serves the teacher.
        keep: right responses per problem, the shortest ones.
        settings: only base_model, curation and grading (samples, max_problems ...) matter here.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        Folder with demonstrations.jsonl and report.json.
    """
    distilled = wire(
        CHAIN,
        teacher=teacher,
        served_as=served_as,
        keep=keep,
        settings=settings,
        store=store,
        sources=sources,
    )
    return distilled["demonstrations"]
