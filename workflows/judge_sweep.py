"""Ternary judge against Bradley-Terry head under other shares of ties and label noise.

    pyflyte run workflows/judge_sweep.py judge_sweep

Every training and measurement is cached on its own, so a sweep that was stopped goes on. The
conditions shape the graph, so they are read when it is made:

    EACHPROMPT_VARIANTS=ties_10,ties_60 pyflyte run workflows/judge_sweep.py judge_sweep

The third thing that matters, the size of the model, is `--base_model`.
"""

from data_schemas import presets
from data_schemas.artifacts import ReportRef
from data_schemas.demonstrations import Parent
from data_schemas.settings import SFTSettings
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.stages.foundation import ingest_base
from tasks.stages.judges import (
    collect_comparisons,
    measure_judge,
    tabulate_judges,
    vary_comparisons,
)
from tasks.stages.opening import open_store
from tasks.stages.sft import sft
from tasks.training.judge.sweep.conditions import select_conditions

CONDITIONS = environment.read("EACHPROMPT_VARIANTS", "", select_conditions)


@entry_point
def judge_sweep(
    files: list[str] = [],  # noqa: B006 - flytekit copies it
    base_model: str = "",
    settings: SFTSettings = presets.JUDGE,
    store: str = "runs",
) -> ReportRef:
    """Train judge and head per condition, and measure both on the same held-out comparisons.

    Args:
        files: comparisons as for `judge`; none for the sample world's.
        base_model: Hugging Face directory; '' for the shipped tiny MoE.
        settings: of the fine-tuning and of the Bradley-Terry head.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        sweep.md and sweep.json.
    """
    run, execution = open_store(store=store, workflow="judge_sweep")
    base = ingest_base(path=base_model, name="judge_base", store=run, execution=execution)
    collected = collect_comparisons(
        settings=settings, files=files, base=base, store=run, execution=execution
    )
    reports = []
    for condition in CONDITIONS:
        comparisons = vary_comparisons(
            settings=collected.settings,
            condition=condition.name,
            comparisons=collected.comparisons,
            store=run,
            execution=execution,
        )
        tuned = sft(
            settings=collected.settings,
            parent=Parent.JUDGE,
            curated=comparisons,
            base=base,
            store=run,
            execution=execution,
        )
        reports.append(
            measure_judge(
                settings=collected.settings,
                judge=tuned.model,
                base=base,
                comparisons=comparisons,
                store=run,
                execution=execution,
            )
        )
    return tabulate_judges(
        settings=collected.settings,
        names=[condition.name for condition in CONDITIONS],
        reports=reports,
        store=run,
        execution=execution,
    )
