"""What the reports of steps say by domain and by language."""

from collections.abc import Sequence

from data_schemas.reports import SLICES, StepReport

Measures = dict[str, list[float]]
"""Values of a measure, one a step that has it."""


def measures_by_slice(steps: Sequence[StepReport]) -> dict[tuple[str, str], Measures]:
    """Gather the metrics of slices: ("language", "th") to its measures, in the order of the steps.

    Steps whose reports have no slices add nothing.
    """
    slices: dict[tuple[str, str], Measures] = {}
    for step in steps:
        for metric, value in step.metrics.items():
            if metric.startswith(SLICES):
                kind, name, measure = metric.removeprefix(SLICES).split("/")
                slices.setdefault((kind, name), {}).setdefault(measure, []).append(value)
    return slices
