"""Variants of settings x seeds x models, in one table with intervals, and an evidence file.

    pyflyte run workflows/lab/study.py study --of workflows/lab/studies/ladder.yaml
    pyflyte run workflows/lab/study.py study --of mine.yaml --against other.yaml

The first runs a declaration; the second compares two presets or settings files, at equal steps and
at equal tokens. Every stage is in Flyte's cache, so that a study that was stopped goes on, and
variants that begin alike share their beginning.
"""

from typing import Annotated

from pydantic import Field

from data_schemas.artifacts import ReportRef
from tasks.lab.stages.study import read_study, study_cells, tabulate_study
from tasks.platform.entry_point import entry_point
from tasks.stages.opening import open_store
from workflows.lab import cells as _cells  # studies name its runs; Flyte ships what is imported

__all__ = ["_cells", "study"]


@entry_point
def study(
    of: str,
    against: str = "",
    seeds: Annotated[int, Field(ge=0, le=100)] = 0,
    evidence: str = "",
    store: str = "runs",
) -> ReportRef:
    """Run every variant of a study with every seed, and compare them.

    Args:
        of: file of a study, as in workflows/lab/studies; with --against, a preset or settings file.
        against: preset or settings file that `of` is compared with.
        seeds: number of seeds instead of those of the study; with --against, '' is 3.
        evidence: folder for the evidence file, such as docs/evidence.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        study.md, study.html, evidence.json.
    """
    plan = read_study(of=of, against=against, seeds=seeds)
    reports = study_cells(plan=plan, store=store)
    context = open_store(store=store, workflow="study", last="tabulate_study")
    return tabulate_study(plan=plan, reports=reports, evidence=evidence, context=context)
