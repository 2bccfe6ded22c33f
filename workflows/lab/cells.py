"""What a cell of a study runs. Part of `study`.

A recipe declares one of these in its own workflow and studies name it: `run: module:NAME`.
"""

from collections.abc import Mapping

from data_schemas.rows import Domain, Parent
from data_schemas.settings import PipelineSettings
from data_schemas.study import (
    InjectedNoise,
    JudgeStudySettings,
    NoiseStudySettings,
    StudyCell,
    TaughtStudySettings,
)
from tasks.lab.stages.study import inject_noise
from tasks.lab.study.runs import CellKind, CellReports
from tasks.stages.chain import Chain, leading_to, link, renamed, wire
from tasks.stages.judges import vary_comparisons
from tasks.stages.opening import open_store
from tasks.stages.rl import rl, with_teachers
from workflows.parts.chain import (
    CHECKPOINTS,
    FINE_TUNING,
    FITTING,
    PREPARATION,
    evaluation,
    grading,
    opening,
    training,
    tuning,
)
from workflows.parts.judging import COLLECTION, judging

LAST = "measure_cell"
"""Follows every stage of a cell."""


def _pipeline_stages(checkpoints: tuple[str, ...]) -> tuple[str, ...]:
    last = max(list(CHECKPOINTS).index(name) for name in checkpoints)
    trained = ("sft", "merge") if last else ()
    return ("curate", *trained, *(("grade", "rl") if last > 3 else ()), "evaluate")


def wire_pipeline(cell: StudyCell, store: str) -> CellReports:
    """Wire the pipeline up to the last checkpoint that the study evaluates.

    Every cell has an execution of its own; what several cells have in common is in Flyte's cache.
    """
    return _wire(PipelineSettings.model_validate_json(cell.settings), cell, store)


def wire_noise(cell: StudyCell, store: str) -> CellReports:
    """Wire the pipeline with verdicts that are wrong on purpose in RL, and in no evaluation."""
    settings = NoiseStudySettings.model_validate_json(cell.settings)
    return _wire(settings.pipeline, cell, store, settings.noise)


def wire_taught(cell: StudyCell, store: str) -> CellReports:
    """Wire the pipeline with phases that the parents of the merge teach, or without a merge."""
    settings = TaughtStudySettings.model_validate_json(cell.settings)
    return _wire(
        settings.pipeline,
        cell,
        store,
        taught_by=settings.taught_by,
        one_parent=settings.one_parent,
    )


def _wire(
    settings: PipelineSettings,
    cell: StudyCell,
    store: str,
    noise: InjectedNoise | None = None,
    taught_by: Mapping[Domain, Parent] | None = None,
    one_parent: bool = False,
) -> CellReports:
    chain = leading_to(
        _chain(noise, taught_by, one_parent),
        *(f"evaluation/{name}" for name in cell.checkpoints),
    )
    values = wire(chain, settings=settings, store=store, max_tokens=cell.max_tokens)
    phases = [one.result for one in chain if one.stage is rl]
    reports = {f"training/{name}": values[name].report for name in phases}
    reports |= {name: values[f"evaluation/{name}"] for name in cell.checkpoints}
    graded = [values["graded"]] if "graded" in values else []
    return CellReports([*reports], [*reports.values()], graded, values["context"])


def _chain(
    noise: InjectedNoise | None,
    taught_by: Mapping[Domain, Parent] | None,
    one_parent: bool,
) -> Chain:
    """Return all stages that a cell may have, of which it wires those that its checkpoints need."""
    start = "general.model" if one_parent else "merged"
    own = {"graded": "noisy" if noise else "graded", "max_tokens": "max_tokens"}
    phases = "taught/{}" if taught_by else "fitted.{}"
    evaluations = [evaluation(*one) for one in CHECKPOINTS.items()]
    return (
        *opening("study", last=LAST),
        *PREPARATION,
        *FITTING,
        *FINE_TUNING,
        tuning("general", Parent.GENERAL, "fitted.sft", "base"),
        grading(start),
        link("noisy", inject_noise, "graded", "context", constants={"noise": noise}),
        *(
            link(
                f"taught/{group}",
                with_teachers,
                constants={"taught_by": dict(taught_by or {})},
                settings=f"fitted.{group}",
                reasoning="sft/reasoning.model",
                commerce="sft/commerce.model",
            )
            for group in ("rl_one", "rl_two")
        ),
        training("rl/one", phases.format("rl_one"), start, **own),
        training("rl/two", phases.format("rl_two"), "rl/one.model", earlier="rl/one.report", **own),
        *renamed(evaluations, merged=start),
    )


def wire_judge(cell: StudyCell, store: str) -> CellReports:
    """Wire the training of a judge on changed comparisons, beside a Bradley-Terry head."""
    settings = JudgeStudySettings.model_validate_json(cell.settings)
    chain = (
        link("context", open_store, "store", constants={"workflow": "study", "last": LAST}),
        *COLLECTION,
        link(
            "varied",
            vary_comparisons,
            "context",
            constants={"training": settings.training},
            settings="collected.settings",
            comparisons="collected.comparisons",
        ),
        *judging("varied"),
    )
    values = wire(
        chain,
        settings=settings.sft,
        files=list(settings.files),
        base_model=settings.base_model,
        store=store,
    )
    return CellReports(["judge"], [values["report"]], [], values["context"])


PIPELINE = CellKind(PipelineSettings, wire_pipeline, _pipeline_stages)
NOISE = CellKind(
    NoiseStudySettings,
    wire_noise,
    lambda checkpoints: (*_pipeline_stages(checkpoints), "inject_noise"),
)
TAUGHT = CellKind(TaughtStudySettings, wire_taught, _pipeline_stages)
JUDGE = CellKind(
    JudgeStudySettings, wire_judge, lambda _: ("vary_comparisons", "sft", "measure_judge")
)
