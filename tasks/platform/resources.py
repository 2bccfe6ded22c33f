"""What every stage runs on, how often it is tried, and whether its result may be reused.

The only table of images, cores, memory, accelerators, timeouts and retries. `shell` makes
the Flyte task of a stage from its line.

On a laptop Flyte ignores resources, timeouts and retries; only the cache has an effect there.
A task runs in one pod on one node, except for the stages marked `team`: they may have a pod on each
of several nodes, and several processes in each pod.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from tasks.platform import environment

Value = TypeVar("Value")


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
    variables: dict[str, str]
    """Those of the above that are set, as text."""

    @classmethod
    def read(cls) -> Self:
        """Read the variables of this process."""
        variables: dict[str, str] = {}

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
            secrets=value("EACHPROMPT_SECRETS", "", environment.secrets),
            nodes=value("EACHPROMPT_NODES", "1", environment.positive),
            processes=value("EACHPROMPT_PROCESSES", "1", environment.positive),
            curation_tasks=value("EACHPROMPT_CURATION_TASKS", "1", environment.positive),
            smoke=value("EACHPROMPT_SMOKE", "0", environment.switch),
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


@dataclass(frozen=True, slots=True)
class Machine:
    """One kind of node."""

    cpu: str
    memory: str
    disk: str
    gpus: int = 0
    """H100s; 0 keeps the stage in the CPU pool."""


SMALL = Machine(cpu="2", memory="8Gi", disk="20Gi")
LARGE = Machine(cpu="16", memory="128Gi", disk="2Ti")
"""Streams checkpoints from and to disk: two shards in memory, whole models on disk."""
H100_NODE = Machine(cpu="96", memory="1600Gi", disk="4Ti", gpus=8)


@dataclass(frozen=True, slots=True)
class Stage:
    """One line of the table."""

    module: str
    """tasks.<module> holds the task function, which is called like the stage."""
    machine: Machine
    image: str
    hours: float
    """Limit of one attempt."""
    retries: int = 0
    """After recoverable errors; on a cluster, after the loss of a node as well."""
    interruptible: bool = False
    """May run on preemptible nodes; only for stages that resume from their last committed step."""
    grace_s: int = 0
    """Seconds between SIGTERM and SIGKILL, to finish and commit the current step."""
    cached: bool = True
    team: bool = False
    """Its engines may span processes: it runs in NODES * PROCESSES of them."""


STAGES = {
    # Stages that read files, stores or registries outside of their inputs are not cached.
    "check_settings": Stage("stages.opening", SMALL, "cpu", hours=0.5, cached=False),
    "with_sources": Stage("stages.opening", SMALL, "cpu", hours=0.5, cached=False),
    "check_retrain_settings": Stage("stages.opening", SMALL, "cpu", hours=0.5, cached=False),
    "with_seed": Stage("stages.opening", SMALL, "cpu", hours=0.5, cached=False),
    "needs_judge": Stage("stages.opening", SMALL, "cpu", hours=0.5, cached=False),
    "scaled_recipe": Stage("stages.opening", SMALL, "cpu", hours=0.5, cached=False),
    "open_store": Stage("stages.opening", SMALL, "cpu", hours=0.5, retries=3, cached=False),
    "ingest": Stage("stages.curation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_base": Stage("stages.foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_parents": Stage("stages.foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_candidates": Stage(
        "stages.foundation", LARGE, "cpu", hours=12, retries=2, cached=False
    ),
    "ingest_models": Stage("stages.foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_retrain_models": Stage(
        "stages.foundation", LARGE, "cpu", hours=12, retries=2, cached=False
    ),
    "pretrain": Stage("stages.foundation", H100_NODE, "trainer", hours=24, retries=2),
    # Its text lies outside.
    "curate_part": Stage("stages.curation", LARGE, "cpu", hours=24, retries=2),
    "curate": Stage("stages.curation", LARGE, "cpu", hours=24, retries=2),
    "fit_settings": Stage("stages.curation", SMALL, "cpu", hours=1, retries=2, cached=False),
    "has_epochs": Stage("stages.sft", SMALL, "cpu", hours=0.5),
    "keep_model": Stage("stages.sft", SMALL, "cpu", hours=0.5),
    "sft": Stage(
        "stages.sft",
        H100_NODE,
        "trainer",
        hours=24 * 7,
        retries=5,
        interruptible=True,
        grace_s=1800,
        team=True,
    ),
    # Reads files from outside.
    "collect_comparisons": Stage("stages.judges", SMALL, "cpu", hours=2, retries=2, cached=False),
    "vary_comparisons": Stage("stages.judges", SMALL, "cpu", hours=0.5),
    "measure_judge": Stage("stages.judges", H100_NODE, "trainer", hours=24, retries=3),
    "merge": Stage("stages.merge", LARGE, "cpu", hours=6, retries=2),
    "mix": Stage("stages.curation", LARGE, "cpu", hours=24, retries=2),
    "grade": Stage("stages.curation", H100_NODE, "rollout", hours=48, retries=3, team=True),
    "pin_recipe": Stage("stages.rl", SMALL, "cpu", hours=0.5, cached=False),
    "rl": Stage(
        "stages.rl",
        H100_NODE,
        "trainer",
        hours=24 * 14,
        retries=5,
        interruptible=True,
        grace_s=1800,
        team=True,
    ),
    "pose": Stage("stages.curation", SMALL, "cpu", hours=2, retries=2),
    # The teacher lies outside.
    "distil": Stage("stages.curation", H100_NODE, "rollout", hours=48, retries=3, cached=False),
    "evaluate": Stage("stages.evaluation", H100_NODE, "rollout", hours=24, retries=3, team=True),
    # What an endpoint serves lies outside.
    "evaluate_endpoint": Stage(
        "stages.evaluation", SMALL, "cpu", hours=48, retries=3, cached=False
    ),
    "evaluate_all": Stage("stages.evaluation", SMALL, "cpu", hours=1, retries=2, cached=False),
    # Prints its table.
    # Prints its table.
    "pool": Stage("stages.evaluation", SMALL, "cpu", hours=2, retries=2),
    "agreement": Stage("stages.evaluation", SMALL, "cpu", hours=2, cached=False),
    "compare": Stage("stages.evaluation", SMALL, "cpu", hours=2, retries=2),
    # Reads logs that lie outside; the date of the execution is in the files.
    "compare_logs": Stage("stages.evaluation", SMALL, "cpu", hours=2, cached=False),
    "export": Stage("stages.evaluation", SMALL, "cpu", hours=2, retries=2, cached=False),
    "compare_last": Stage("stages.evaluation", SMALL, "cpu", hours=2, retries=2),
    # Reads a file from outside.
    "read_study": Stage("stages.study", SMALL, "cpu", hours=0.5, cached=False),
    # Their cells are cached stage by stage.
    "study_cells": Stage("stages.study", SMALL, "cpu", hours=24 * 28, retries=2, cached=False),
    "study_variant": Stage("stages.study", SMALL, "cpu", hours=24 * 28, retries=2, cached=False),
    "study_cell": Stage("stages.study", SMALL, "cpu", hours=24 * 28, retries=2, cached=False),
    "measure_cell": Stage("stages.study", SMALL, "cpu", hours=2, retries=2),
    # Prints its table, and writes a file outside.
    "tabulate_study": Stage("stages.study", SMALL, "cpu", hours=2, retries=2, cached=False),
    "release": Stage("stages.release", LARGE, "cpu", hours=6, retries=2, cached=False),
    "summary": Stage("stages.pages", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "answers_page": Stage("stages.pages", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "audit": Stage("stages.audit", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ledger": Stage("stages.ledger", SMALL, "cpu", hours=2, retries=2, cached=False),
    "trace": Stage("stages.rows", LARGE, "cpu", hours=2, retries=2, cached=False),
    "compare_models": Stage("stages.rows", LARGE, "cpu", hours=2, retries=2, cached=False),
    "forget": Stage("stages.rows", LARGE, "cpu", hours=2, retries=2, cached=False),
    "replay": Stage("stages.replay", SMALL, "cpu", hours=1, retries=2, cached=False),
    "mismatch": Stage("stages.mismatch", LARGE, "cpu", hours=2, retries=2, cached=False),
    "capacity": Stage("stages.capacity", SMALL, "cpu", hours=0.5, cached=False),
    "find_start": Stage("stages.retraining", SMALL, "cpu", hours=1, retries=2, cached=False),
    "scan_inbox": Stage("stages.retraining", LARGE, "cpu", hours=12, retries=2, cached=False),
    "skip_curation": Stage("stages.retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "examine_rows": Stage("stages.retraining", SMALL, "cpu", hours=1, retries=2, cached=False),
    "skip_grading": Stage("stages.retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "assess_learning_value": Stage(
        "stages.retraining", SMALL, "cpu", hours=1, retries=2, cached=False
    ),
    "keep_start": Stage("stages.retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "record_skip": Stage("stages.retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "conclude": Stage("stages.retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "curation_page": Stage("stages.pages", SMALL, "cpu", hours=1, retries=2, cached=False),
    "night_page": Stage("stages.pages", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "drop_files": Stage("stages.retraining", SMALL, "cpu", hours=0.5, cached=False),
    "name_released": Stage("stages.retraining", SMALL, "cpu", hours=0.5, cached=False),
    "nights_page": Stage("stages.pages", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "retrain_summary": Stage("stages.pages", SMALL, "cpu", hours=0.5, retries=2, cached=False),
}


def add_stages(stages: Mapping[str, Stage]) -> None:
    """Add the stages of a recipe, beside which its task functions are."""
    STAGES.update(
        {name: replace(one, machine=SMALL, image="cpu") for name, one in stages.items()}
        if SMOKE
        else stages
    )


add_stages(STAGES)
