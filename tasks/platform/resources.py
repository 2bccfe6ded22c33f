"""What every stage runs on, how often it is tried, and whether its result may be reused.

The only table of images, cores, memory, accelerators, timeouts and retries. `shell` makes
the Flyte task of a stage from its line.

On a laptop Flyte ignores resources, timeouts and retries; only the cache has an effect there.
A task runs in one pod on one node, except for the stages marked `team`: they may have a pod on each
of several nodes, and several processes in each pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tasks.platform import environment

IMAGES = {
    kind: environment.read(
        f"EACHPROMPT_IMAGE_{kind.upper()}", f"ghcr.io/eachprompt/{kind}:0.1.0", environment.image
    )
    for kind in ("cpu", "rollout", "trainer")
}
"""One image per kind of machine (see containers/). Set the variables when registering."""
POD_TEMPLATES = {
    kind: environment.read(f"EACHPROMPT_POD_TEMPLATE_{kind.upper()}", "", environment.name)
    for kind in IMAGES
}
"""PodTemplates of the cluster, per image: tolerations, volumes, variables such as NCCL's."""
SECRETS = environment.read("EACHPROMPT_SECRETS", "", environment.secrets)
"""Which secrets of the cluster become variables of every pod: VARIABLE=group/key,..."""
NODES = environment.read("EACHPROMPT_NODES", "1", environment.positive)
"""Nodes of every stage that may have several; more than one needs Kubeflow's training operator."""
PROCESSES = environment.read("EACHPROMPT_PROCESSES", "1", environment.positive)
"""Processes of such a stage on each of its nodes: one per GPU that trains.

Like the images, both are read when the workflows are registered; pods receive the same values.
"""


CURATION_TASKS = environment.read("EACHPROMPT_CURATION_TASKS", "1", environment.positive)
"""Tasks that map the shards of curation, as a map task; 1 = the task that collects them maps them.

Read when the workflows are registered. The number changes no byte of what is curated.
"""

SMOKE = environment.read("EACHPROMPT_SMOKE", "0", environment.switch)
"""Register every stage on the smallest machine and in the CPU image: the tiny model on embedded
engines then tests a cluster (store, MLflow, images, permissions) without a GPU."""
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

    package: str
    """tasks.<package>.task holds the task function, which is called like the stage."""
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
    "check_settings": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "with_sources": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "check_retrain_settings": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "with_seed": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "needs_judge": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "scaled_recipe": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "open_store": Stage("intake", SMALL, "cpu", hours=0.5, retries=3, cached=False),
    "ingest": Stage("curation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_base": Stage("foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_parents": Stage("foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_candidates": Stage("foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_models": Stage("foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_retrain_models": Stage("foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "pretrain": Stage("foundation", H100_NODE, "trainer", hours=24, retries=2),
    "upcycle": Stage("foundation", LARGE, "cpu", hours=6, retries=2),
    # Its text lies outside.
    "curate_part": Stage("curation", LARGE, "cpu", hours=24, retries=2),
    "curate": Stage("curation", LARGE, "cpu", hours=24, retries=2),
    "fit_settings": Stage("curation", SMALL, "cpu", hours=1, retries=2, cached=False),
    "has_epochs": Stage("sft", SMALL, "cpu", hours=0.5),
    "keep_model": Stage("sft", SMALL, "cpu", hours=0.5),
    "sft": Stage(
        "sft",
        H100_NODE,
        "trainer",
        hours=24 * 7,
        retries=5,
        interruptible=True,
        grace_s=1800,
        team=True,
    ),
    # Reads files from outside.
    "collect_comparisons": Stage("judge_training", SMALL, "cpu", hours=2, retries=2, cached=False),
    # Prints its table.
    "tabulate_judges": Stage("judge_training", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "vary_comparisons": Stage("judge_training", SMALL, "cpu", hours=0.5),
    "measure_judge": Stage("judge_training", H100_NODE, "trainer", hours=24, retries=3),
    "merge": Stage("merge", LARGE, "cpu", hours=6, retries=2),
    "mix": Stage("curation", LARGE, "cpu", hours=24, retries=2),
    "grade": Stage("curation", H100_NODE, "rollout", hours=48, retries=3, team=True),
    "pin_recipe": Stage("rl", SMALL, "cpu", hours=0.5, cached=False),
    "rl": Stage(
        "rl",
        H100_NODE,
        "trainer",
        hours=24 * 14,
        retries=5,
        interruptible=True,
        grace_s=1800,
        team=True,
    ),
    "pose": Stage("curation", SMALL, "cpu", hours=2, retries=2),
    # The teacher lies outside.
    "distil": Stage("curation", H100_NODE, "rollout", hours=48, retries=3, cached=False),
    "evaluate": Stage("evaluation", H100_NODE, "rollout", hours=24, retries=3, team=True),
    # What an endpoint serves lies outside.
    "evaluate_endpoint": Stage("evaluation", SMALL, "cpu", hours=48, retries=3, cached=False),
    "evaluate_all": Stage("evaluation", SMALL, "cpu", hours=1, retries=2, cached=False),
    # Prints its table.
    # Prints its table.
    "pool": Stage("evaluation", SMALL, "cpu", hours=2, retries=2),
    "agreement": Stage("evaluation", SMALL, "cpu", hours=2, cached=False),
    "compare": Stage("evaluation", SMALL, "cpu", hours=2, retries=2),
    # Reads logs that lie outside; the date of the execution is in the files.
    "compare_logs": Stage("evaluation", SMALL, "cpu", hours=2, cached=False),
    "export": Stage("evaluation", SMALL, "cpu", hours=2, retries=2, cached=False),
    "compare_last": Stage("evaluation", SMALL, "cpu", hours=2, retries=2),
    "vary": Stage("ablation", SMALL, "cpu", hours=0.5),
    "tabulate": Stage("ablation", SMALL, "cpu", hours=2, retries=2, cached=False),
    # Prints its table.
    # Prints its table.
    "compare_claims": Stage("claims", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "release": Stage("release", LARGE, "cpu", hours=6, retries=2, cached=False),
    "summary": Stage("report", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "answers_page": Stage("report", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "audit": Stage("audit", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ledger": Stage("ledger", SMALL, "cpu", hours=2, retries=2, cached=False),
    "trace": Stage("tracing", LARGE, "cpu", hours=2, retries=2, cached=False),
    "compare_models": Stage("tracing", LARGE, "cpu", hours=2, retries=2, cached=False),
    "forget": Stage("tracing", LARGE, "cpu", hours=2, retries=2, cached=False),
    "replay": Stage("replay", SMALL, "cpu", hours=1, retries=2, cached=False),
    "mismatch": Stage("mismatch", LARGE, "cpu", hours=2, retries=2, cached=False),
    "capacity": Stage("capacity", SMALL, "cpu", hours=0.5, cached=False),
    "find_start": Stage("retraining", SMALL, "cpu", hours=1, retries=2, cached=False),
    "scan_inbox": Stage("retraining", LARGE, "cpu", hours=12, retries=2, cached=False),
    "skip_curation": Stage("retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "examine_rows": Stage("retraining", SMALL, "cpu", hours=1, retries=2, cached=False),
    "skip_grading": Stage("retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "assess_learning_value": Stage("retraining", SMALL, "cpu", hours=1, retries=2, cached=False),
    "keep_start": Stage("retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "record_skip": Stage("retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "conclude": Stage("retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "curation_page": Stage("report", SMALL, "cpu", hours=1, retries=2, cached=False),
    "night_page": Stage("report", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "drop_files": Stage("retraining", SMALL, "cpu", hours=0.5, cached=False),
    "name_released": Stage("retraining", SMALL, "cpu", hours=0.5, cached=False),
    "nights_page": Stage("report", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "retrain_summary": Stage("report", SMALL, "cpu", hours=0.5, retries=2, cached=False),
}


def add_stages(stages: Mapping[str, Stage]) -> None:
    """Add the stages of a recipe, beside which its task functions are."""
    STAGES.update(
        {name: replace(one, machine=SMALL, image="cpu") for name, one in stages.items()}
        if SMOKE
        else stages
    )


add_stages(STAGES)
