"""The pipeline's presets as launch plans, and the scheduled runs.

    pyflyte run workflows/launch_plans.py cpu_smoke --store runs
    pyflyte register --activate-launchplans workflows

EACHPROMPT_NOTIFY, read at registration, lists the e-mail addresses that are told how a scheduled
retraining ended. Flyte knows success and failure; whether a successful one promoted a model, was
refused by the gate or had nothing to train on is its output, and what the webhook in the secret
EACHPROMPT_WEBHOOK is told (`tasks.pages.webhook`).

A variable has the name of its launch plan, because that is how pyflyte finds it. All inputs are
defaults, which an execution may change: part of `--settings` is merged over those of the plan.
"""

from flytekit import ConcurrencyPolicy, CronSchedule, Email, WorkflowExecutionPhase

from data_schemas import presets
from data_schemas.intake import Teaching
from data_schemas.settings import PipelineSettings
from tasks.platform import resources
from tasks.platform.entry_point import plan
from workflows.post_training import post_training
from workflows.retrain import retrain

_MAIL = Email(
    phases=[
        WorkflowExecutionPhase.SUCCEEDED,
        WorkflowExecutionPhase.FAILED,
        WorkflowExecutionPhase.ABORTED,
        WorkflowExecutionPhase.TIMED_OUT,
    ],
    recipients_email=list(resources.NOTIFY),
)


def _inputs(settings: PipelineSettings, store: str) -> dict[str, object]:
    # On a cluster a folder is the pod's own, so every store is a bucket.
    return {
        "settings": settings,
        "store": f"s3://eachprompt/{store}",
        "sources": "",
        "base_model": "",
        "release": "",
    }


# Register with EACHPROMPT_SMOKE=1 to need no GPU.
cpu_smoke = plan("cpu_smoke", post_training, _inputs(presets.CPU_SMOKE, "smoke"))
single_node = plan(
    "single_node", post_training, _inputs(presets.SINGLE_NODE, "single_node"), max_parallelism=2
)
full_scale = plan(
    "full_scale", post_training, _inputs(presets.FULL_SCALE, "full_scale"), max_parallelism=4
)
compassmax = plan(
    "compassmax", post_training, _inputs(presets.COMPASSMAX, "compassmax"), max_parallelism=4
)
ring_lite = plan(
    "ring_lite", post_training, _inputs(presets.RING_LITE, "ring_lite"), max_parallelism=4
)
compass_thinker = plan(
    "compass_thinker",
    post_training,
    _inputs(presets.COMPASS_THINKER, "compass_thinker"),
    max_parallelism=2,
)

nightly_retrain = plan(
    "nightly_retrain",
    retrain,
    {
        "settings": presets.NIGHTLY_SINGLE_NODE,
        "inbox": "",
        "model": "",
        "demonstrations": Teaching.SFT,
        "store": "s3://eachprompt/single_node",
    },
    schedule=CronSchedule(schedule="0 3 * * *"),
    notifications=[_MAIL] if resources.NOTIFY else [],
    max_parallelism=1,
    # The next one is skipped while a night is not over.
    concurrency=ConcurrencyPolicy(max_concurrency=1),
)
