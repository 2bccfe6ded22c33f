"""The pipeline as chains of stages, of which every workflow takes the part that it needs.

    opening -> PREPARATION -> FITTING -> FINE_TUNING -> GRADING -> PHASES -> SCORING -> RELEASING

What stands here is order and names; `tasks.stages.chain` wires it.
"""

from collections.abc import Sequence

from data_schemas.rows import Parent
from data_schemas.sources import Part
from tasks.platform.resources import CURATION_TASKS
from tasks.platform.shell import map_over
from tasks.stages.chain import Chain, Link, link
from tasks.stages.curation import curate, curate_part, fit_settings, grade, ingest
from tasks.stages.evaluation import compare, evaluate, evaluate_all, export
from tasks.stages.foundation import (
    ingest_base,
    ingest_candidates,
    ingest_models,
    ingest_parents,
)
from tasks.stages.merge import merge
from tasks.stages.opening import check_settings, end_execution, open_store
from tasks.stages.pages import answers_page, summary
from tasks.stages.release import release
from tasks.stages.rl import rl
from tasks.stages.sft import sft

END = "end_execution"
"""The last task of an execution whose last stages may come from the cache."""


def opening(workflow: str, *inputs: str, last: str = END) -> Chain:
    """Check the settings, open the store, and copy the models that the settings name into it.

    Args:
        workflow: name of the executions.
        inputs: of the command line that are checked with them: 'sources', 'model' ...
        last: tasks after which an execution is over, as `open_store` has them.
    """
    names = {"workflow": workflow, "last": last}
    return (
        link("checked", check_settings, "settings", "store", *inputs),
        link("context", open_store, "store", constants=names),
        # Before a cached stage: its key has the address of a judge or guard, not its content.
        link("models", ingest_models, "context", settings="checked"),
    )


def ending(*results: str, context: str = "context") -> Link:
    """End an execution in MLflow.

    Args:
        results: values that are texts, locations mostly: of what nothing reads in its chain.
        context: value that is its context.
    """
    return link(f"ended/{context}", end_execution, context=context, results=[*results])


PARTS = [Part(number=number, of=CURATION_TASKS) for number in range(CURATION_TASKS)]


def curation(held_out_from: str = "", result: str = "curated") -> Chain:
    """Curate, behind a map task for what it does to single rows if there are several tasks.

    Args:
        held_out_from: value that is an earlier curated set, whose held-out suites are reused.
        result: what the curated set is called in the chain.
    """
    reads = {"settings": "models.curation", "raw": "raw", "base": "base", "context": "context"}
    constants = {} if held_out_from else {"held_out_from": None}
    reads |= {"held_out_from": held_out_from} if held_out_from else {}
    if len(PARTS) == 1:
        return (link(result, curate, constants=constants | {"parts": []}, reads=reads),)
    parts = f"parts/{result}"

    def in_parts(**inputs: object) -> object:
        return map_over(curate_part, "part", PARTS, **inputs)

    return (
        link(parts, in_parts, constants=constants, reads=reads),
        link(result, curate, constants=constants, reads=reads | {"parts": parts}),
    )


BASE = link(
    "base",
    ingest_base,
    "context",
    constants={"name": "base"},
    path="models.base_model",
    architecture="models.architecture",
    chat="models.chat",
)
RAW = link("raw", ingest, "context", settings="models.curation")
PREPARATION = (BASE, RAW, *curation())
FITTING = (link("fitted", fit_settings, "curated", settings="models", store="context.store"),)


def tuning(
    result: str, parent: Parent, settings: str, start: str, curated: str = "curated"
) -> Link:
    """Fine-tune a model on the demonstrations of a parent.

    Args:
        result: what it is called in the chain.
        parent: whose demonstrations.
        settings: value that has the settings.
        start: value that is the model.
        curated: value that has the demonstrations.
    """
    reads = {"settings": settings, "base": start, "curated": curated}
    return link(result, sft, "context", constants={"parent": parent}, reads=reads)


FINE_TUNING = (
    link("starts", ingest_parents, "base", "context", settings="fitted.sft"),
    tuning("sft/reasoning", Parent.REASONING, "fitted.sft", "starts.reasoning"),
    tuning("sft/commerce", Parent.COMMERCE, "fitted.sft", "starts.commerce"),
    link(
        "merged",
        merge,
        "base",
        "context",
        settings="fitted.merge",
        reasoning="sft/reasoning.model",
        commerce="sft/commerce.model",
    ),
)
"""Two parents from one base, and their merge."""


def grading(
    start: str = "merged",
    settings: str = "fitted",
    curated: str = "curated",
    result: str = "graded",
) -> Link:
    """Measure how often a model solves each problem."""
    reads = {"settings": f"{settings}.grading", "curated": curated, "start": start}
    return link(result, grade, "context", reads=reads)


def evaluation(name: str, model: str, settings: str = "fitted", result: str = "") -> Link:
    """Evaluate a model on the held-out suites.

    Args:
        name: of the model in the statement.
        model: value that is the model.
        settings: value whose `evaluation` are the settings.
        result: '' = 'evaluation/NAME'.
    """
    return link(
        result or f"evaluation/{name}",
        evaluate,
        "curated",
        "context",
        constants={"name": name},
        settings=f"{settings}.evaluation",
        model=model,
    )


def training(name: str, settings: str, start: str, **others: str) -> Link:
    """Train a model by a phase of RL.

    Args:
        name: of the phase, in the statement and in the chain.
        settings: value that has its settings.
        start: value that is the model.
        others: further inputs, such as the report of the phase before (`earlier`).
    """
    reads = {"settings": settings, "start": start, "graded": "graded"} | others
    return link(name, rl, "context", constants={"name": name}, reads=reads)


PHASES = (
    training("rl/one", "fitted.rl_one", "merged"),
    evaluation("rl/one", "rl/one.model"),
    training("rl/two", "fitted.rl_two", "rl/one.model", earlier="rl/one.report"),
    evaluation("rl/two", "rl/two.model"),
)
CHECKPOINTS = {
    "base": "base",
    "sft/reasoning": "sft/reasoning.model",
    "sft/commerce": "sft/commerce.model",
    "merged": "merged",
    "rl/one": "rl/one.model",
    "rl/two": "rl/two.model",
}
"""What is evaluated on the way, in the order in which the models are made."""
EVALUATIONS = [f"evaluation/{name}" for name in CHECKPOINTS]
SCORING = tuple(evaluation(*one) for one in CHECKPOINTS.items() if not one[0].startswith("rl/"))


def comparing(candidate: str, parents: list[str], settings: str = "fitted") -> Link:
    """Compare the answers of a candidate with those of the models before it."""
    return link(
        "progression",
        compare,
        "context",
        settings=f"{settings}.evaluation",
        candidate=candidate,
        parents=parents,
    )


def report(
    settings: str, reports: list[str], releases: Sequence[str] = (), precisions: str = ""
) -> Link:
    """Print and write the results of a run.

    Args:
        settings: value that has the settings of the pipeline.
        reports: values that are reports of fine-tunings, phases and the comparison, in order.
        releases: value that is the release, if there is one.
        precisions: value that is the reports of other precisions, if there are any.
    """
    reads = {"settings": settings, "reports": reports, "releases": [*releases]}
    reads |= {"precisions": precisions or []}
    return link("page", summary, "curated", "context", reads=reads)


def releasing(candidate: str, held_out: str, parents: list[str], **others: str) -> Chain:
    """Compare a model with its predecessors, apply the gate, and register it.

    Args:
        candidate: value that is the model.
        held_out: value that is its evaluation.
        parents: values that are the evaluations of the models before it, in their order.
        others: further inputs of the release.
    """
    reads = {"settings": "fitted.release", "candidate": candidate} | others
    return (
        comparing(held_out, parents),
        link("released", release, "progression", "context", reads=reads),
    )


def candidates(*inputs: str) -> Link:
    """Copy models that are only evaluated into the store; endpoints are named.

    Args:
        inputs: further ones of the command line: 'precision'.
    """
    return link(
        "candidates",
        ingest_candidates,
        "context",
        *inputs,
        models="model",
        architecture="checked.architecture",
        chat="checked.chat",
    )


def answering(questions: str) -> Chain:
    """Let all candidates answer the held-out problems of a set, for programs and for people."""
    return (
        link(
            "scores",
            evaluate_all,
            "base",
            "context",
            settings="models.evaluation",
            models="candidates",
            curated=questions,
        ),
        link("formats", export, "context", reports="scores", curated=questions),
        link(
            "answers",
            answers_page,
            "context",
            settings="models.evaluation",
            reports="scores",
            curated=questions,
        ),
    )
