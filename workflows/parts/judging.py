"""A judge that is fine-tuned on comparisons, as a chain. Part of several workflows."""

from data_schemas.rows import Parent
from tasks.stages.chain import Chain, link
from tasks.stages.foundation import ingest_base
from tasks.stages.judges import check_comparisons, collect_comparisons, measure_judge
from workflows.parts.chain import tuning

COLLECTION = (
    link("checked", check_comparisons, "settings", "files", "base_model"),
    link(
        "base",
        ingest_base,
        "context",
        constants={"name": "judge_base"},
        path="checked.base_model",
    ),
    link("collected", collect_comparisons, "files", "base", "context", settings="checked.settings"),
)
"""Comparisons as demonstrations, and the model that learns from them."""


def judging(comparisons: str = "collected.comparisons") -> Chain:
    """Fine-tune the judge, and compare it with a Bradley-Terry head on the same comparisons."""
    return (
        tuning("judge", Parent.JUDGE, "collected.settings", "base", comparisons),
        link(
            "report",
            measure_judge,
            "base",
            "context",
            settings="collected.settings",
            judge="judge.model",
            comparisons=comparisons,
        ),
    )
