"""Let several models solve the training problems: solve rates, and gold answers that they doubt.

    pyflyte run workflows/verify_answers.py verify_answers --sources gsm8k=train.jsonl \\
        --model path/to/small,path/to/large,http://host:8000/v1#served-name

People fill in annotate.jsonl, which is then a source: --sources gsm8k=train.jsonl,decisions=FILE
So is solve_rates.jsonl, by which problems are selected: solve_rates=FILE,bands=FILE
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import ReportRef
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.stages.curation import pose
from tasks.stages.evaluation import evaluate_all, export
from tasks.stages.foundation import ingest_candidates, ingest_models
from tasks.stages.opening import check_settings, open_store
from tasks.stages.pages import answers_page
from workflows.parts.preparation import preparation


class Doubted(NamedTuple):
    """Outputs of a verification of gold answers."""

    doubts: ReportRef
    answers: str


@entry_point
def verify_answers(
    model: str,
    settings: PipelineSettings = presets.CPU_SMOKE,
    store: str = "runs",
    sources: str = "",
) -> Doubted:
    """Sample models of different size on the curated training problems.

    Args:
        model: ADDRESS,NAME=ADDRESS: model directories, s3:// prefixes, models:/NAME@alias, or
            endpoints as http://host:8000/v1#served-name. Of one alone the base model is the other.
        settings: only base_model, curation, evaluation (samples ...) and the draw of grading
            (max_problems, weights, seed) matter here.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.

    Returns:
        doubts: annotate.jsonl for people and solve_rates.jsonl, beside the results of every model.
        answers: the HTML page of every answer.
    """
    checked = check_settings(settings=settings, sources=sources)
    context = open_store(store=store, workflow="verify_answers", last="export,answers_page")
    models = ingest_candidates(models=model, context=context, architecture=checked.architecture)
    with_models = ingest_models(settings=checked, context=context)
    rows = preparation(settings=with_models, context=context)
    questions = pose(settings=with_models.grading, curated=rows.curated, context=context)
    scores = evaluate_all(
        settings=with_models.evaluation,
        models=models,
        base=rows.base,
        curated=questions,
        context=context,
    )
    doubts = export(reports=scores, curated=questions, context=context)
    answers = answers_page(
        settings=with_models.evaluation, reports=scores, curated=questions, context=context
    )
    return Doubted(doubts=doubts, answers=answers)
