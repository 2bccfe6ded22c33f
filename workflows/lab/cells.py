"""What a cell of a study runs. Part of `study`.

A recipe declares one of these in its own workflow and studies name it: `run: module:NAME`.
"""

from collections.abc import Mapping

from data_schemas.artifacts import CheckpointRef, GradedRef, ReportRef
from data_schemas.rows import Domain, Parent
from data_schemas.settings import PipelineSettings
from data_schemas.study import (
    Cell,
    InjectedNoise,
    JudgeStudySettings,
    NoiseStudySettings,
    TaughtStudySettings,
)
from tasks.lab.stages.study import inject_noise
from tasks.lab.study.runs import Run, Wired
from tasks.stages.curation import fit_settings, grade
from tasks.stages.evaluation import evaluate
from tasks.stages.foundation import ingest_base, ingest_models
from tasks.stages.judges import (
    check_comparisons,
    collect_comparisons,
    measure_judge,
    vary_comparisons,
)
from tasks.stages.opening import check_settings, open_store
from tasks.stages.rl import rl, with_teachers
from tasks.stages.sft import sft
from workflows.parts.fine_tuning import fine_tuning
from workflows.parts.preparation import preparation

CHECKPOINTS = ("base", "sft/reasoning", "sft/commerce", "merged", "rl/one", "rl/two")


def _pipeline_stages(checkpoints: tuple[str, ...]) -> tuple[str, ...]:
    last = max(CHECKPOINTS.index(name) for name in checkpoints)
    trained = ("sft", "merge") if last else ()
    return ("curate", *trained, *(("grade", "rl") if last > 3 else ()), "evaluate")


def wire_pipeline(cell: Cell, store: str) -> Wired:
    """Wire the pipeline up to the last checkpoint that the study evaluates.

    Every cell has an execution of its own; what several cells have in common is in Flyte's cache.
    """
    return _wire(PipelineSettings.model_validate_json(cell.settings), cell, store)


def wire_noise(cell: Cell, store: str) -> Wired:
    """Wire the pipeline with verdicts that are wrong on purpose in RL, and in no evaluation."""
    settings = NoiseStudySettings.model_validate_json(cell.settings)
    return _wire(settings.pipeline, cell, store, settings.noise)


def wire_taught(cell: Cell, store: str) -> Wired:
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
    cell: Cell,
    store: str,
    noise: InjectedNoise | None = None,
    taught_by: Mapping[Domain, Parent] | None = None,
    one_parent: bool = False,
) -> Wired:
    context = open_store(store=store, workflow="study")
    checked = check_settings(settings=settings, sources="")
    with_models = ingest_models(settings=checked, context=context)
    rows = preparation(settings=with_models, context=context)
    fitted = fit_settings(settings=with_models, curated=rows.curated, store=context.store)
    models: dict[str, CheckpointRef] = {"base": rows.base}
    trainings: dict[str, ReportRef] = {}
    graded: list[GradedRef] = []
    trained_on: list[GradedRef] = []
    last = max(CHECKPOINTS.index(name) for name in cell.checkpoints)
    if last > 0:
        tuned = fine_tuning(
            settings=fitted.sft,
            merging=fitted.merge,
            curated=rows.curated,
            base=rows.base,
            context=context,
        )
        models |= {
            "sft/reasoning": tuned.reasoning,
            "sft/commerce": tuned.commerce,
            "merged": tuned.merged,
        }
        if one_parent:
            models["merged"] = sft(
                settings=fitted.sft,
                parent=Parent.GENERAL,
                curated=rows.curated,
                base=rows.base,
                context=context,
            ).model
    if last > 3:
        graded.append(
            grade(
                settings=fitted.grading,
                curated=rows.curated,
                start=models["merged"],
                context=context,
            )
        )
        trained_on += graded
        if noise is not None:
            trained_on = [inject_noise(noise=noise, graded=graded[0], context=context)]
        first = fitted.rl_one
        if taught_by:
            first = with_teachers(
                settings=first,
                taught_by=dict(taught_by),
                reasoning=models["sft/reasoning"],
                commerce=models["sft/commerce"],
            )
        one = rl(
            settings=first,
            name="rl/one",
            start=models["merged"],
            graded=trained_on[0],
            context=context,
            max_tokens=cell.max_tokens,
        )
        models["rl/one"], trainings["training/rl/one"] = one.model, one.report
    if last > 4:
        second = fitted.rl_two
        if taught_by:
            second = with_teachers(
                settings=second,
                taught_by=dict(taught_by),
                reasoning=models["sft/reasoning"],
                commerce=models["sft/commerce"],
            )
        two = rl(
            settings=second,
            name="rl/two",
            start=models["rl/one"],
            graded=trained_on[0],
            context=context,
            max_tokens=cell.max_tokens,
            earlier=trainings["training/rl/one"],
        )
        models["rl/two"], trainings["training/rl/two"] = two.model, two.report
    evaluations = {
        name: evaluate(
            settings=fitted.evaluation,
            name=name,
            model=models[name],
            curated=rows.curated,
            context=context,
        )
        for name in cell.checkpoints
    }
    reports = {**trainings, **evaluations}
    return Wired([*reports], [*reports.values()], graded, context)


def wire_judge(cell: Cell, store: str) -> Wired:
    """Wire the training of a judge on changed comparisons, beside a Bradley-Terry head."""
    settings = JudgeStudySettings.model_validate_json(cell.settings)
    context = open_store(store=store, workflow="study")
    files = list(settings.files)
    checked = check_comparisons(settings=settings.sft, files=files, base_model=settings.base_model)
    base = ingest_base(path=checked.base_model, name="judge_base", context=context)
    collected = collect_comparisons(
        settings=checked.settings, files=files, base=base, context=context
    )
    comparisons = vary_comparisons(
        settings=collected.settings,
        training=settings.training,
        comparisons=collected.comparisons,
        context=context,
    )
    tuned = sft(
        settings=collected.settings,
        parent=Parent.JUDGE,
        curated=comparisons,
        base=base,
        context=context,
    )
    report = measure_judge(
        settings=collected.settings,
        judge=tuned.model,
        base=base,
        comparisons=comparisons,
        context=context,
    )
    return Wired(["judge"], [report], [], context)


PIPELINE = Run(PipelineSettings, wire_pipeline, _pipeline_stages)
NOISE = Run(
    NoiseStudySettings,
    wire_noise,
    lambda checkpoints: (*_pipeline_stages(checkpoints), "inject_noise"),
)
TAUGHT = Run(TaughtStudySettings, wire_taught, _pipeline_stages)
JUDGE = Run(JudgeStudySettings, wire_judge, lambda _: ("vary_comparisons", "sft", "measure_judge"))
