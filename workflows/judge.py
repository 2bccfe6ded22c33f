"""Train a ternary judge on human comparisons and compare it with a Bradley-Terry reward model.

pyflyte run workflows/judge.py judge --files '["pandalm.jsonl", "llmbar.jsonl"]'
"""

from typing import NamedTuple

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, ReportRef
from data_schemas.settings import SFTSettings
from tasks.platform.entry_point import entry_point
from tasks.stages.chain import link, wire
from tasks.stages.opening import open_store
from workflows.parts.chain import END, ending
from workflows.parts.judging import COLLECTION, judging


class JudgeTraining(NamedTuple):
    """Outputs of the workflow."""

    judge: CheckpointRef
    report: ReportRef


CHAIN = (
    link("context", open_store, "store", constants={"workflow": "judge", "last": END}),
    *COLLECTION,
    *judging(),
    ending("report.uri"),
)


@entry_point
def judge(
    files: list[str] = [],  # noqa: B006 - flytekit copies it
    base_model: str = "",
    settings: SFTSettings = presets.JUDGE,
    store: str = "runs",
) -> JudgeTraining:
    """Train a judge that answers A, B or TIE, and report how often rewards invert advantages.

    Args:
        files: comparisons as JSON lines in the format of PandaLM or LLMBar; none for the sample
            world's.
        base_model: Hugging Face directory; '' for the shipped tiny MoE.
        settings: of the fine-tuning and of the Bradley-Terry head.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        judge: a Hugging Face directory; its folder is the address of a judge of kind 'model'.
        report: report.json and judge.png.
    """
    values = {"settings": settings, "files": files, "base_model": base_model, "store": store}
    trained = wire(CHAIN, **values)
    return JudgeTraining(judge=trained["judge"].model, report=trained["report"])
