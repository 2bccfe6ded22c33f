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
from tasks.stages.chain import link, wire
from tasks.stages.curation import pose
from workflows.parts.chain import PREPARATION, answering, candidates, opening


class Doubts(NamedTuple):
    """Outputs of a verification of gold answers."""

    doubts: ReportRef
    answers: str


_OPENING = opening("verify_answers", "sources", "model", last="export,answers_page")
CHAIN = (
    *_OPENING[:2],
    candidates(),
    *_OPENING[2:],
    *PREPARATION,
    link("questions", pose, "curated", "context", settings="models.grading"),
    *answering("questions"),
)


@entry_point
def verify_answers(
    model: str,
    settings: PipelineSettings = presets.CPU_SMOKE,
    store: str = "runs",
    sources: str = "",
) -> Doubts:
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
    posed = wire(CHAIN, model=model, settings=settings, store=store, sources=sources)
    return Doubts(doubts=posed["formats"], answers=posed["answers"])
