"""What every stage runs on, how often it is tried, and whether its result may be reused.

The only table of images, cores, memory, accelerators, timeouts and retries. `shell` makes
the Flyte task of a stage from its line.

On a laptop Flyte ignores resources, timeouts and retries; only the cache has an effect there.
A task runs in one pod on one node, except for the stages marked `team`: they may have a pod on each
of several nodes, and several processes in each pod.
"""

import logging
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from tasks.platform import environment
from tasks.platform.source import COMMIT_VARIABLE, commit

logger = logging.getLogger(__name__)
Value = TypeVar("Value")
_REGISTERING = {"register", "package", "--remote"}
"""Words of a command line of pyflyte that sends tasks to a cluster."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One kind of pod: what it asks for, as requests and as limits."""

    cpu: str
    memory: str
    disk: str
    gpus: int = 0
    """0 keeps the stage in the CPU pool."""
    accelerator: str = ""
    """Model of the GPUs, as the label of their nodes names it."""


_MACHINES = {
    "small": "cpu=2,memory=8Gi,disk=20Gi",
    "rows": "cpu=8,memory=32Gi,disk=200Gi",
    "weights": "cpu=8,memory=64Gi,disk=1Ti",
    "gpus": "cpu=96,memory=1600Gi,disk=4Ti,gpus=8,accelerator=nvidia-h100",
}
"""Kinds of pods: small ones; those that read rows; those that stream weights, two shards in memory
and whole models on disk; whole nodes of GPUs."""


def _machine(text: str) -> Machine:
    sizes = environment.machine(text)
    return Machine(
        cpu=sizes["cpu"],
        memory=sizes["memory"],
        disk=sizes["disk"],
        gpus=int(sizes.get("gpus", 0)),
        accelerator=sizes.get("accelerator", ""),
    )


@dataclass(frozen=True, slots=True)
class Registration:
    """What is read at import, and has to be the same at registration and in every pod.

    Pods receive the variables as they were set: a task that makes tasks (`fan_out`) makes them in
    its pod, from this table.
    """

    images: dict[str, str]
    """One image per kind of machine (see containers/)."""
    pod_templates: dict[str, str]
    """PodTemplates of the cluster, per image: tolerations, volumes, variables such as NCCL's."""
    machines: dict[str, Machine]
    """What pods of each kind ask for."""
    secrets: dict[str, tuple[str, str]]
    """Which secrets of the cluster become variables of every pod: VARIABLE=group/key,..."""
    nodes: int
    """Nodes of every stage that may have several; more than one needs the training operator."""
    processes: int
    """Processes of such a stage on each of its nodes: one per GPU that trains."""
    curation_tasks: int
    """Tasks that map the shards of curation, as a map task; 1 = the task that collects them maps
    them. The number changes no byte of what is curated."""
    smoke: bool
    """Every stage on the smallest machine and in the CPU image: the tiny model on embedded engines
    then tests a cluster (store, MLflow, images, permissions) without a GPU."""
    gpu_hour: tuple[float, str]
    """Price of one GPU for an hour, and its currency; '' where nobody said one."""
    variables: dict[str, str]
    """Those of the above that are set, as text, and the commit, which no pod could look up."""

    @classmethod
    def read(cls) -> Self:
        """Read the variables of this process."""
        revision = commit()
        variables = {COMMIT_VARIABLE: revision} if revision else {}

        def value(variable: str, default: str, parse: Callable[[str], Value]) -> Value:
            if variable in os.environ:
                variables[variable] = os.environ[variable]
            return environment.read(variable, default, parse)

        kinds = ("cpu", "rollout", "trainer")
        return cls(
            images={
                kind: value(
                    f"EACHPROMPT_IMAGE_{kind.upper()}",
                    f"ghcr.io/eachprompt/{kind}:0.2.0",
                    environment.image,
                )
                for kind in kinds
            },
            pod_templates={
                kind: value(f"EACHPROMPT_POD_TEMPLATE_{kind.upper()}", "", environment.name)
                for kind in kinds
            },
            machines={
                kind: value(f"EACHPROMPT_MACHINE_{kind.upper()}", default, _machine)
                for kind, default in _MACHINES.items()
            },
            secrets=value("EACHPROMPT_SECRETS", "", environment.secrets),
            nodes=value("EACHPROMPT_NODES", "1", environment.positive),
            processes=value("EACHPROMPT_PROCESSES", "1", environment.positive),
            curation_tasks=value("EACHPROMPT_CURATION_TASKS", "1", environment.positive),
            smoke=value("EACHPROMPT_SMOKE", "0", environment.switch),
            gpu_hour=value("EACHPROMPT_GPU_HOUR", "", environment.price),
            variables=variables,
        )


REGISTRATION = Registration.read()
IMAGES, POD_TEMPLATES, SECRETS = (
    REGISTRATION.images,
    REGISTRATION.pod_templates,
    REGISTRATION.secrets,
)
NODES, PROCESSES = REGISTRATION.nodes, REGISTRATION.processes
CURATION_TASKS, SMOKE = REGISTRATION.curation_tasks, REGISTRATION.smoke
NOTIFY = environment.read("EACHPROMPT_NOTIFY", "", environment.addresses)
"""E-mail addresses that are told how a scheduled retraining ended."""
LABELS = environment.read("EACHPROMPT_LABELS", "", environment.labels)
"""Labels of the executions of launch plans; Flyte puts them on every pod and PyTorchJob, where a
scheduler that admits teams as a whole reads its queue."""


if not SMOKE and _REGISTERING & set(sys.argv):
    for _kind, _image in IMAGES.items():
        if "@sha256:" not in _image:
            logger.warning(
                "stages of the kind %s are registered with %s, a tag that can be moved later; set "
                "EACHPROMPT_IMAGE_%s to NAME@sha256:DIGEST",
                *(_kind, _image, _kind.upper()),
            )

SMALL, ROWS, WEIGHTS, GPU_NODE = (REGISTRATION.machines[kind] for kind in _MACHINES)


FAILURES_PER_HOUR = 0.1 / 720
"""Rate of nodes of 8 GPUs (Llama 3, arXiv 2407.21783: 419 interruptions of 16,384 GPUs in 54
days)."""
PREEMPTIONS_PER_HOUR = 0.2 / 720
"""Rate of preemptible ones (AWS's Spot Advisor: 15 to 20 % a month of many types)."""
LOST_HOURS = 3.5
"""Assumed: of a team whose node is taken away. Ten steps of half an hour lie between two commits,
of which it loses half; after an hour it has another node and has started."""
MOST_LOST = 0.01
"""Largest share of a team's time that preemptions may be expected to cost."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One line of the table."""

    module: str
    """tasks.<module> holds the task function, which is called like the stage."""
    machine: Machine
    image: str
    hours: float
    """Limit of one attempt; Flyte counts the time in which it waits for a node."""
    retries: int = 0
    """After recoverable errors, and after the loss of a node of a stage over several nodes. The
    loss of a pod counts against a budget of the platform (`max-node-retries-system-failures`)."""
    interruptible: bool = False
    """May run on preemptible nodes, on few of them if on several (`interruptible_over`); only for
    stages that resume from their last committed step."""
    grace_s: int = 0
    """Seconds between SIGTERM and SIGKILL, to finish and commit the current step."""
    cached: bool = True
    team: bool = False
    """Its engines may span processes: it runs in NODES * PROCESSES of them."""

    def retries_over(self, nodes: int) -> int:
        """Return the retries, with one for each node that it is expected to lose if it has several.

        Args:
            nodes: of a stage of a team.
        """
        if not self.team or nodes == 1:
            return self.retries
        losses_per_hour = FAILURES_PER_HOUR + PREEMPTIONS_PER_HOUR
        return self.retries + math.ceil(losses_per_hour * nodes * self.hours)

    def interruptible_over(self, nodes: int) -> bool:
        """Return whether it may run on preemptible nodes, of which a team loses more with its size.

        A team that loses one stands still as a whole. Up to 10 nodes that is expected to cost
        `MOST_LOST` of its time, over 32 of them thrice as much, and 32 free ones at once are rare.

        Args:
            nodes: of a stage of a team.
        """
        lost = PREEMPTIONS_PER_HOUR * nodes * LOST_HOURS
        return self.interruptible and (not self.team or lost <= MOST_LOST)


WAIT = 12
"""Hours of a stage of minutes: a full cluster must not end the execution."""
STAGES = {
    # Stages that read files, stores or registries outside of their inputs are not cached.
    "check_settings": Stage("stages.opening", SMALL, "cpu", hours=WAIT, cached=False),
    "with_sources": Stage("stages.opening", SMALL, "cpu", hours=WAIT, cached=False),
    "with_seed": Stage("stages.opening", SMALL, "cpu", hours=WAIT, cached=False),
    "needs_judge": Stage("stages.opening", SMALL, "cpu", hours=WAIT, cached=False),
    "scaled_recipe": Stage("stages.opening", SMALL, "cpu", hours=WAIT, cached=False),
    "open_store": Stage("stages.opening", SMALL, "cpu", hours=WAIT, retries=3, cached=False),
    "end_execution": Stage("stages.opening", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "open_night": Stage("stages.opening", SMALL, "cpu", hours=WAIT, retries=3, cached=False),
    "ingest": Stage("stages.curation", ROWS, "cpu", hours=12, retries=2, cached=False),
    "ingest_base": Stage("stages.foundation", WEIGHTS, "cpu", hours=12, retries=2, cached=False),
    "ingest_parents": Stage("stages.foundation", WEIGHTS, "cpu", hours=12, retries=2, cached=False),
    "ingest_candidates": Stage(
        "stages.foundation", WEIGHTS, "cpu", hours=12, retries=2, cached=False
    ),
    "ingest_models": Stage("stages.foundation", WEIGHTS, "cpu", hours=12, retries=2, cached=False),
    "ingest_retrain_models": Stage(
        "stages.foundation", WEIGHTS, "cpu", hours=12, retries=2, cached=False
    ),
    "pretrain": Stage("stages.foundation", GPU_NODE, "trainer", hours=24, retries=2),
    # Its text lies outside.
    "curate_part": Stage("stages.curation", ROWS, "cpu", hours=24, retries=2),
    "curate": Stage("stages.curation", ROWS, "cpu", hours=24, retries=2),
    "fit_settings": Stage("stages.curation", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "has_epochs": Stage("stages.sft", SMALL, "cpu", hours=WAIT),
    "keep_model": Stage("stages.sft", SMALL, "cpu", hours=WAIT),
    "sft": Stage(
        "stages.sft",
        GPU_NODE,
        "trainer",
        hours=24 * 7,
        retries=5,
        interruptible=True,
        grace_s=1800,
        team=True,
    ),
    # These read files from outside.
    "check_comparisons": Stage("stages.judges", SMALL, "cpu", hours=WAIT, cached=False),
    "collect_comparisons": Stage(
        "stages.judges", SMALL, "cpu", hours=WAIT, retries=2, cached=False
    ),
    "vary_comparisons": Stage("stages.judges", SMALL, "cpu", hours=WAIT),
    "measure_judge": Stage("stages.judges", GPU_NODE, "trainer", hours=24, retries=3),
    "merge": Stage("stages.merge", WEIGHTS, "cpu", hours=6, retries=2),
    "mix": Stage("stages.curation", ROWS, "cpu", hours=24, retries=2),
    "grade": Stage("stages.curation", GPU_NODE, "rollout", hours=48, retries=3, team=True),
    "pin_recipe": Stage("stages.rl", SMALL, "cpu", hours=WAIT, cached=False),
    "with_teachers": Stage("stages.rl", SMALL, "cpu", hours=WAIT, cached=False),
    "rl": Stage(
        "stages.rl",
        GPU_NODE,
        "trainer",
        hours=24 * 14,
        retries=5,
        interruptible=True,
        grace_s=1800,
        team=True,
    ),
    "pose": Stage("stages.curation", SMALL, "cpu", hours=WAIT, retries=2),
    # The teacher lies outside.
    "distil": Stage("stages.curation", GPU_NODE, "rollout", hours=48, retries=3, cached=False),
    "evaluate": Stage("stages.evaluation", GPU_NODE, "rollout", hours=24, retries=3, team=True),
    # What an endpoint serves lies outside.
    "evaluate_endpoint": Stage(
        "stages.evaluation", SMALL, "cpu", hours=48, retries=3, cached=False
    ),
    "evaluate_all": Stage("stages.evaluation", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "measure_precisions": Stage(
        "stages.evaluation", GPU_NODE, "rollout", hours=24, retries=3, team=True
    ),
    "compare_precisions": Stage(
        "stages.evaluation", SMALL, "cpu", hours=WAIT, retries=2, cached=False
    ),
    # Prints its table.
    "pool": Stage("stages.evaluation", SMALL, "cpu", hours=WAIT, retries=2),
    "agreement": Stage("stages.evaluation", SMALL, "cpu", hours=WAIT, cached=False),
    "compare": Stage("stages.evaluation", SMALL, "cpu", hours=WAIT, retries=2),
    # Reads logs that lie outside; the date of the execution is in the files.
    "compare_logs": Stage("stages.evaluation", SMALL, "cpu", hours=WAIT, cached=False),
    "export": Stage("stages.evaluation", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "release": Stage("stages.release", WEIGHTS, "cpu", hours=6, retries=2, cached=False),
    "summary": Stage("stages.pages", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "answers_page": Stage("stages.pages", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "audit": Stage("stages.audit", WEIGHTS, "cpu", hours=12, retries=2, cached=False),
    "ledger": Stage("stages.ledger", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "trace": Stage("stages.rows", ROWS, "cpu", hours=WAIT, retries=2, cached=False),
    "compare_models": Stage("stages.rows", ROWS, "cpu", hours=WAIT, retries=2, cached=False),
    "forget": Stage("stages.rows", ROWS, "cpu", hours=WAIT, retries=2, cached=False),
    "replay": Stage("stages.replay", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "capacity": Stage("stages.capacity", SMALL, "cpu", hours=WAIT, cached=False),
    "scan_inbox": Stage("stages.retraining", ROWS, "cpu", hours=12, retries=2, cached=False),
    "skip_curation": Stage("stages.retraining", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "examine_rows": Stage("stages.retraining", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "skip_grading": Stage("stages.retraining", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "assess_learning_value": Stage(
        "stages.retraining", SMALL, "cpu", hours=WAIT, retries=2, cached=False
    ),
    "keep_start": Stage("stages.retraining", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "record_skip": Stage("stages.retraining", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "conclude": Stage("stages.retraining", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "tell_failure": Stage("stages.failure", SMALL, "cpu", hours=WAIT, retries=3, cached=False),
    "curation_page": Stage("stages.pages", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "night_page": Stage("stages.pages", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "drop_files": Stage("stages.retraining", SMALL, "cpu", hours=WAIT, cached=False),
    "name_released": Stage("stages.retraining", SMALL, "cpu", hours=WAIT, cached=False),
    "nights_page": Stage("stages.pages", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
    "retrain_summary": Stage("stages.pages", SMALL, "cpu", hours=WAIT, retries=2, cached=False),
}


def add_stages(stages: Mapping[str, Stage]) -> None:
    """Add the stages of a recipe, beside which its task functions are."""
    STAGES.update(
        {name: replace(one, machine=SMALL, image="cpu") for name, one in stages.items()}
        if SMOKE
        else stages
    )


add_stages(STAGES)


def reserved_gpus() -> int:
    """Count the GPUs of all pods of the stage that runs in this one; 0 outside of a cluster."""
    stage = STAGES.get(os.environ.get("FLYTE_INTERNAL_TASK_NAME", "").rpartition(".")[2])
    return stage.machine.gpus * (NODES if stage.team else 1) if stage else 0
