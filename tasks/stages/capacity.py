"""Flyte shell of the memory budget."""

from tasks.capacity.budget_table import HEADROOM, budget_table, describe_fit
from tasks.capacity.plan import PlanOptions, read_plan
from tasks.errors import CapacityError
from tasks.platform.shell import shell, unfold
from tasks.platform.tables import Screen
from tasks.settings.early import require_one_shape


@shell("capacity")
@unfold
def capacity(options: PlanOptions) -> str:
    """Print the memory of one GPU by part; return that the layout fits, and the free share.

    Raises:
        SettingsError: the options are invalid.
        CapacityError: the layout does not fit.
    """
    require_one_shape(options.preset, options.model)
    plan = read_plan(options)
    estimate = plan.budget()
    Screen().print(budget_table(plan, estimate))
    if not estimate.fits(HEADROOM):
        raise CapacityError(f"{plan.name} {describe_fit(estimate)}")
    return describe_fit(estimate)
