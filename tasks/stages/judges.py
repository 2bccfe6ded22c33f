"""Flyte tasks of the judge: collect comparisons, and measure the trained judge."""

import json
from pathlib import Path
from typing import NamedTuple

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
)
from data_schemas.settings import SFTSettings
from data_schemas.study import TrainingPairs
from tasks.engines.model_judge import ModelJudge
from tasks.errors import typed
from tasks.platform.shell import shell
from tasks.platform.tables import Screen
from tasks.stages.runner import Facts, Inputs, Outputs, Record, Work, run
from tasks.store import location
from tasks.training.judge import collection, report
from tasks.training.judge.changes import changed_pairs
from tasks.training.judge.measurement import measure


class JudgeTrainingData(NamedTuple):
    """The training data of the judge, and its settings."""

    comparisons: DatasetRef
    settings: SFTSettings


class JudgeTrainingInputs(NamedTuple):
    """The inputs of a training, which can be read."""

    settings: SFTSettings
    base_model: str


@shell("check_comparisons")
def check_comparisons(
    settings: SFTSettings, files: list[str], base_model: str
) -> JudgeTrainingInputs:
    """Refuse comparisons that cannot be read or split, before the base model is copied.

    Args:
        settings: its seed determines the split.
        files: of PandaLM or LLMBar; empty for the sample world.
        base_model: passed on.
    """
    with typed("--files"):
        collection.check(settings, _paths(files))
    return JudgeTrainingInputs(collection.settings_for_judge(settings), base_model)


def _collect(
    settings: SFTSettings, inputs: Inputs, outputs: Outputs, work: Work, paths: list[Path]
) -> Facts:
    for place, path in enumerate(paths, start=1):
        work.entry.source(f"file/{place}", path)
    with typed("--files"):
        return collection.collect(settings, paths, inputs["base"], outputs["comparisons"])


COLLECT = Record("collect_comparisons", _collect, DatasetRef, "comparisons")


@shell("collect_comparisons")
def collect_comparisons(
    settings: SFTSettings, files: list[str], base: CheckpointRef, context: Context
) -> JudgeTrainingData:
    """Read comparisons, split them by task and write the training ones as demonstrations.

    Args:
        settings: its seed determines the split.
        files: of PandaLM or LLMBar; empty for the sample world.
        base: its context length determines which comparisons are too long.
        context: of the run.
    """
    fitted = collection.settings_for_judge(settings)
    return JudgeTrainingData(run(COLLECT, fitted, {"base": base}, context, [_paths(files)]), fitted)


def _measure(settings: SFTSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    folder = inputs["comparisons"]
    left_out = json.loads((folder / collection.LEFT_OUT).read_bytes())
    pairs = collection.read_collection(folder)
    judge, base, out = ModelJudge(inputs["judge"]), inputs["base"], outputs["report"]
    measured = measure(settings, judge, base, pairs, left_out, out)
    work.entry.rows(len(pairs[0]) + len(pairs[1]), measured.held_out_pairs)
    Screen().print(report.table(measured))
    return report.facts(measured)


MEASURE = Record("measure_judge", _measure, ReportRef, "report")


@shell("measure_judge")
def measure_judge(
    settings: SFTSettings,
    judge: CheckpointRef,
    base: CheckpointRef,
    comparisons: DatasetRef,
    context: Context,
) -> ReportRef:
    """Compare the judge with a Bradley-Terry head trained on the same comparisons."""
    reads = {"judge": judge, "base": base, "comparisons": comparisons}
    return run(MEASURE, settings, reads, context)


def _vary(training: TrainingPairs, inputs: Inputs, outputs: Outputs, _: Work, seed: int) -> Facts:
    folder = inputs["comparisons"]
    left_out = json.loads((folder / collection.LEFT_OUT).read_bytes())
    pairs, held_out = collection.read_collection(folder)
    changed = changed_pairs(pairs, training, seed)
    left_out["changes"] = len(pairs) - len(changed)
    return collection.write_collection(changed, held_out, left_out, outputs["comparisons"])


VARY = Record("vary_comparisons", _vary, DatasetRef, "comparisons")


@shell("vary_comparisons")
def vary_comparisons(
    settings: SFTSettings, training: TrainingPairs, comparisons: DatasetRef, context: Context
) -> DatasetRef:
    """Change the training comparisons.

    Args:
        settings: its seed determines which pairs are left out or get another label.
        training: the changes.
        comparisons: collected; the held-out ones stay as they are.
        context: of the run.
    """
    return run(VARY, training, {"comparisons": comparisons}, context, [settings.seed])


def _paths(files: list[str]) -> list[Path]:
    return [Path(location.existing_file(file, "--files")) for file in files]
