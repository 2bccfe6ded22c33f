"""Score models on the same problems and compare them: checkpoints, and endpoints of others.

    pyflyte run workflows/evaluate.py evaluate --model path/to/model
    pyflyte run workflows/evaluate.py evaluate --model X --suites gsm8k=test.jsonl,bbh=folder
    pyflyte run workflows/evaluate.py evaluate \\
        --model my/model,models:/NAME@released,http://host:8000/v1#served-name
    pyflyte run workflows/evaluate.py evaluate --model my/model --precision bf16,int8

Problems that none of several models solved, or on another answer of which all agree, are listed for
people in annotate.jsonl. A run that was killed asks only for the answers that are missing when it
is started again.
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import ReportRef
from data_schemas.settings import PipelineSettings
from tasks.platform.entry_point import entry_point
from tasks.stages.chain import link, wire
from tasks.stages.evaluation import compare, compare_precisions
from workflows.parts.chain import PREPARATION, answering, candidates, opening, report


class EvaluationOutputs(NamedTuple):
    """Outputs of an evaluation."""

    scores: list[ReportRef]
    formats: ReportRef
    page: str
    answers: str


_OPENING = opening(
    "evaluate", "sources", "suites", "model", "precision", last="summary,export,answers_page"
)
CHAIN = (
    *_OPENING[:2],
    candidates("precision"),
    *_OPENING[2:],
    *PREPARATION,
    *answering("curated"),
    link("progression", compare, "context", settings="models.evaluation", parents="scores"),
    link(
        "precisions",
        compare_precisions,
        "curated",
        "context",
        settings="models.evaluation",
        models="candidates",
        scores="scores",
    ),
    report("models", ["progression"], precisions="precisions"),
)


@entry_point
def evaluate(
    model: str,
    settings: PipelineSettings = presets.CPU_SMOKE,
    store: str = "runs",
    sources: str = "",
    suites: str = "",
    precision: str = "",
) -> EvaluationOutputs:
    """Score models on held-out problems, one alone against the base.

    Args:
        model: ADDRESS,NAME=ADDRESS: model directories, s3:// prefixes, models:/NAME@alias, or
            endpoints as http://host:8000/v1#served-name (keys: EACHPROMPT_ENDPOINT_KEYS).
        settings: only base_model, curation, evaluation matter.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.
        sources: real files instead of the sample world, as adapter=path,adapter=path.
        suites: benchmarks alone, name=path,name=path, suite.yaml=path; names: `eachprompt data`.
        precision: as bf16,int8: what each changes, by language.

    Returns:
        scores: of every model on every suite, with every answer.
        formats: for lm-evaluation-harness, Every Eval Ever and the model hub; annotate.jsonl.
        page: the HTML report; the last model is compared with the others.
        answers: the HTML page of every answer, and of the differences between any two models.
    """
    scored = wire(
        CHAIN,
        model=model,
        settings=settings,
        store=store,
        sources=sources,
        suites=suites,
        precision=precision,
    )
    return EvaluationOutputs(
        scores=scored["scores"],
        formats=scored["formats"],
        page=scored["page"],
        answers=scored["answers"],
    )
