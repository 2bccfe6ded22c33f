"""The papers' claims on one page: their number, ours, its interval, and whether it is shown.

    pyflyte run workflows/claims.py claims

It needs the ablation's variants `claims`; `make claims` selects them. Phases, evaluations and the
judge are cached one by one, so a run that was stopped goes on, and what an ablation on the same
store has trained is not trained again.
"""

from data_schemas import presets
from data_schemas.artifacts import ReportRef
from data_schemas.group import Positive
from data_schemas.settings import PipelineSettings, SFTSettings
from tasks.claims.task import compare_claims
from tasks.platform.entry_point import entry_point
from tasks.stages.judges import measure_judge
from tasks.stages.opening import open_store
from workflows.ablation import SETTINGS, study
from workflows.parts.judging import judging


@entry_point
def claims(
    settings: PipelineSettings = SETTINGS,
    judge: SFTSettings = presets.JUDGE,
    max_tokens: Positive = 100_000,
    store: str = "runs",
) -> ReportRef:
    """Measure the papers' claims on the tiny model and write claims.md and claims.html.

    Args:
        settings: of the stages before the phases, and of evaluation.
        judge: of its fine-tuning.
        max_tokens: every phase ends after the step in which it has generated this many.
        store: folder or s3:// prefix where everything is kept.
    """
    studied = study(settings=settings, max_tokens=max_tokens, store=store, sources="")
    run, execution = open_store(store=store, workflow="claims")
    trained = judging(files=[], base_model="", settings=judge, store=run, execution=execution)
    judged = measure_judge(
        settings=trained.settings,
        judge=trained.judge,
        base=trained.base,
        comparisons=trained.comparisons,
        store=run,
        execution=execution,
    )
    return compare_claims(
        settings=settings.evaluation,
        study=studied,
        judge=judged,
        store=run,
        execution=execution,
    )
