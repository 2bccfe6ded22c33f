"""The same checkpoints with several seeds, as one comparison and one page."""

from collections.abc import Mapping, Sequence

from data_schemas.artifacts import Context, DatasetRef, ReportRef
from data_schemas.settings import PipelineSettings
from tasks.stages.evaluation import compare, pool
from tasks.stages.pages import summary


def pooled_page(
    settings: PipelineSettings,
    curated: DatasetRef,
    by_seed: Sequence[Mapping[str, ReportRef]],
    context: Context,
) -> str:
    """Wire a pooling per checkpoint, the comparison with the last one, and its page.

    `settings.evaluation` is evaluated anew for every task: flytekit resolves a promise's
    attribute in place, so one promise cannot be the input of two tasks.

    Args:
        settings: of all seeds.
        curated: of any seed.
        by_seed: the evaluations of every seed by checkpoint, in the same order.
        context: of the run.
    """
    pooled = [
        pool(
            settings=settings.evaluation,
            name=name,
            parts=[reports[name] for reports in by_seed],
            context=context,
        )
        for name in by_seed[0]
    ]
    progression = compare(
        settings=settings.evaluation, candidate=pooled[-1], parents=pooled[:-1], context=context
    )
    return summary(
        settings=settings, curated=curated, reports=[progression], releases=[], context=context
    )
