"""The pipeline's presets as launch plans, and the scheduled runs.

    pyflyte run workflows/launch_plans.py cpu_smoke --store runs
    pyflyte register --activate-launchplans workflows

EACHPROMPT_NOTIFY, read at registration, lists the e-mail addresses that are told how a scheduled
retraining ended. Flyte knows success and failure; whether a successful one promoted a model, was
refused by the gate or had nothing to train on is its output, and what the webhook in the secret
EACHPROMPT_WEBHOOK is told (`tasks.pages.webhook`).

A variable has the name of its launch plan, because that is how pyflyte finds it.
"""

from typing import cast

from flytekit import CronSchedule, Email, LaunchPlan, WorkflowExecutionPhase
from flytekit.core.workflow import WorkflowBase

from data_schemas import presets
from data_schemas.intake import Teaching
from tasks.platform import resources
from workflows.post_training import post_training
from workflows.retrain import retrain

# `@workflow` returns a workflow that is typed as the function it decorates.
_PIPELINE = cast("WorkflowBase", post_training)

_MAIL = Email(
    phases=[
        WorkflowExecutionPhase.SUCCEEDED,
        WorkflowExecutionPhase.FAILED,
        WorkflowExecutionPhase.ABORTED,
        WorkflowExecutionPhase.TIMED_OUT,
    ],
    recipients_email=list(resources.NOTIFY),
)

cpu_smoke = LaunchPlan.get_or_create(
    workflow=_PIPELINE,
    name="cpu_smoke",
    fixed_inputs={"settings": presets.CPU_SMOKE},
    # On a cluster a folder is the pod's own. Register with EACHPROMPT_SMOKE=1 to need no GPU.
    default_inputs={"store": "s3://eachprompt/smoke"},
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
    # Inputs, not fixed: an execution may name another inbox or model.
    default_inputs={
        "settings": presets.NIGHTLY_SINGLE_NODE,
        "inbox": "",
        "model": "",
        "demonstrations": Teaching.SFT,
        "store": "s3://eachprompt/single_node",
    },
    notifications=[_MAIL] if resources.NOTIFY else [],
    max_parallelism=1,
)
