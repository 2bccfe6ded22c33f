"""Score any checkpoint on the held-out suites and compare it with the base model.

pyflyte run workflows/evaluate.py evaluate --model path/to/model
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import ReportRef
from data_schemas.settings import PipelineSettings
from tasks.evaluation.task import compare
from tasks.evaluation.task import evaluate as score
from tasks.foundation.task import ingest_base, ingest_models
from tasks.intake.task import check_settings, open_store
from tasks.platform.entry_point import entry_point
from tasks.report.task import summary
from workflows.parts.preparation import preparation


class Evaluated(NamedTuple):
    """Outputs of an evaluation."""

    scores: ReportRef
    page: str


@entry_point
def evaluate(
    model: str,
    settings: PipelineSettings = presets.CPU_SMOKE,
    store: str = "runs",
    sources: str = "",
) -> Evaluated:
    """Score a Hugging Face model directory and compare it with the base model.

    Args:
        model: directory of the model, with its tokenizer.
        settings: only base_model, curation and evaluation matter here.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        scores: of the model on every suite, with every answer.
        page: the HTML report.
    """
    checked = check_settings(settings=settings, sources=sources)
    run, execution = open_store(store=store, workflow="evaluate")
    candidate = ingest_base(path=model, name="candidate", store=run, execution=execution)
    named = ingest_models(settings=checked, store=run, execution=execution)
    rows = preparation(settings=named, store=run, execution=execution)
    before = score(
        settings=named.evaluation,
        name="base",
        model=rows.base,
        curated=rows.curated,
        store=run,
        execution=execution,
    )
    scores = score(
        settings=named.evaluation,
        name="candidate",
        model=candidate,
        curated=rows.curated,
        store=run,
        execution=execution,
    )
    progression = compare(
        settings=named.evaluation,
        candidate=scores,
        parents=[before],
        store=run,
        execution=execution,
    )
    page = summary(
        settings=named,
        curated=rows.curated,
        reports=[progression],
        releases=[],
        store=run,
        execution=execution,
    )
    return Evaluated(scores=scores, page=page)
