"""The pipeline's presets as launch plans, and the scheduled runs.

    pyflyte run workflows/launch_plans.py cpu_smoke
    pyflyte register --activate-launchplans workflows

A variable has the name of its launch plan, because that is how pyflyte finds it.
"""

from typing import cast

from flytekit import CronSchedule, LaunchPlan
from flytekit.core.workflow import WorkflowBase

from data_schemas import presets
from workflows.post_training import post_training
from workflows.retrain import retrain

# `@workflow` returns a workflow that is typed as the function it decorates.
_PIPELINE = cast("WorkflowBase", post_training)

cpu_smoke = LaunchPlan.get_or_create(
    workflow=_PIPELINE,
    name="cpu_smoke",
    fixed_inputs={"settings": presets.CPU_SMOKE},
    default_inputs={"store": "runs"},
)

single_node = LaunchPlan.get_or_create(
    workflow=_PIPELINE,
    name="single_node",
    fixed_inputs={"settings": presets.SINGLE_NODE},
    default_inputs={"store": "s3://eachprompt/single_node"},
    max_parallelism=2,
)

full_scale = LaunchPlan.get_or_create(
    workflow=_PIPELINE,
    name="full_scale",
    fixed_inputs={"settings": presets.FULL_SCALE},
    default_inputs={"store": "s3://eachprompt/full_scale"},
    max_parallelism=4,
)

compassmax = LaunchPlan.get_or_create(
    workflow=_PIPELINE,
    name="compassmax",
    fixed_inputs={"settings": presets.COMPASSMAX},
    default_inputs={"store": "s3://eachprompt/compassmax"},
    max_parallelism=4,
)

ring_lite = LaunchPlan.get_or_create(
    workflow=_PIPELINE,
    name="ring_lite",
    fixed_inputs={"settings": presets.RING_LITE},
    default_inputs={"store": "s3://eachprompt/ring_lite"},
    max_parallelism=4,
)

compass_thinker = LaunchPlan.get_or_create(
    workflow=_PIPELINE,
    name="compass_thinker",
    fixed_inputs={"settings": presets.COMPASS_THINKER},
    default_inputs={"store": "s3://eachprompt/compass_thinker"},
    max_parallelism=2,
)

nightly_retrain = LaunchPlan.get_or_create(
    workflow=cast("WorkflowBase", retrain),
    name="nightly_retrain",
    schedule=CronSchedule(schedule="0 3 * * *"),
    default_inputs={"settings": presets.NIGHTLY, "store": "s3://eachprompt/production"},
    max_parallelism=1,
)
