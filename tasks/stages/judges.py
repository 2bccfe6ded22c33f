"""Flyte tasks of the judge: collect comparisons, and measure the trained judge."""

import json
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
)
from data_schemas.settings import SFTSettings
from data_schemas.study import TrainingPairs
from tasks.errors import typed
from tasks.gym.judging.opening import ModelJudge
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import stage
from tasks.store import location
from tasks.training.judge import collection, report
from tasks.training.judge.measurement import measure
from tasks.training.judge.pairs import changed_pairs


class Collected(NamedTuple):
    """The training data of the judge, and its settings."""

    comparisons: DatasetRef
    settings: SFTSettings


class Checked(NamedTuple):
    """The inputs of a training, which can be read."""

    settings: SFTSettings
    base_model: str


@shell("check_comparisons")
def check_comparisons(settings: SFTSettings, files: list[str], base_model: str) -> Checked:
    """Refuse comparisons that cannot be read or split, before the base model is copied.

    Args:
        settings: its seed determines the split.
        files: of PandaLM or LLMBar; empty for the sample world.
        base_model: passed on.
    """
    with typed("--files"):
        collection.check(settings, _paths(files))
    return Checked(collection.settings_for_judge(settings), base_model)


@shell("collect_comparisons")
def collect_comparisons(
    settings: SFTSettings, files: list[str], base: CheckpointRef, context: Context
) -> Collected:
    """Read comparisons, split them by task and write the training ones as demonstrations.

    Args:
        settings: its seed determines the split.
        files: of PandaLM or LLMBar; empty for the sample world.
        base: its context length determines which comparisons are too long.
        context: of the run.
    """
    fitted = collection.settings_for_judge(settings)
    code = code_digest("collect_comparisons")
    with stage("collect_comparisons", fitted, context, code) as record:
        folder = record.read("base", base)
        paths = _paths(files)
        for place, path in enumerate(paths, start=1):
            record.source(f"file/{place}", path)
        with record.output("comparisons") as out, typed("--files"):
            facts = collection.collect(fitted, paths, folder, out)
        record.facts(facts)
        deck_of_facts("collect_comparisons", facts)
        return Collected(record.ref("comparisons", DatasetRef), fitted)


@shell("measure_judge")
def measure_judge(
    settings: SFTSettings,
    judge: CheckpointRef,
    base: CheckpointRef,
    comparisons: DatasetRef,
    context: Context,
) -> ReportRef:
    """Compare the judge with a Bradley-Terry head trained on the same comparisons."""
    code = code_digest("measure_judge")
    with stage("measure_judge", settings, context, code) as record:
        model, start = record.read("judge", judge), record.read("base", base)
        folder = record.read("comparisons", comparisons)
        left_out = json.loads((folder / collection.LEFT_OUT).read_bytes())
        pairs = collection.read_collection(folder)
        with record.output("report") as out:
            measured = measure(settings, ModelJudge(model), start, pairs, left_out, out)
        facts = report.facts(measured)
        record.facts(facts)
        record.rows(len(pairs[0]) + len(pairs[1]), measured.held_out_pairs)
        deck_of_facts("measure_judge", facts)
        Console().print(report.table(measured))
        return record.ref("report", ReportRef)


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
    code = code_digest("vary_comparisons")
    with stage("vary_comparisons", training, context, code) as record:
        folder = record.read("comparisons", comparisons)
        left_out = json.loads((folder / collection.LEFT_OUT).read_bytes())
        pairs, held_out = collection.read_collection(folder)
        changed = changed_pairs(pairs, training, settings.seed)
        left_out["changes"] = len(pairs) - len(changed)
        with record.output("comparisons") as out:
            facts = collection.write_collection(changed, held_out, left_out, out)
        record.facts(facts)
        deck_of_facts("vary_comparisons", facts)
        return record.ref("comparisons", DatasetRef)


def _paths(files: list[str]) -> list[Path]:
    return [Path(location.existing_file(file, "--files")) for file in files]
