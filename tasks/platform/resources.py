"""What every stage runs on, how often it is tried, and when its result may be reused.

The only table of images, cores, memory, accelerators, timeouts and retries. A shell takes
its line from here:

    @resources.shell("curate")
    def curate(...): ...

On a laptop Flyte ignores resources, timeouts and retries; only the cache matters there.
One task is one pod on one node, but for the stages marked `team`, which may have a pod on each of
several nodes and several processes in each pod.
"""

import functools
import html as markup
import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, cast

import click
from flytekit import (
    Cache,
    Deck,
    PodTemplate,
    Resources,
    conditional,
    current_context,
    task,
    workflow,
)
from flytekit.core.checkpointer import Checkpoint
from flytekit.core.condition import Condition
from flytekit.core.context_manager import FlyteContextManager
from flytekit.core.promise import Promise
from flytekit.exceptions.user import FlyteRecoverableException
from flytekit.extras.accelerators import H100
from kubernetes.client import V1Container, V1PodSpec

from tasks.errors import RETRYABLE, PipelineError, SettingsError
from tasks.platform.cache_version import shell_digest

Args = ParamSpec("Args")
Result = TypeVar("Result")

IMAGES = {
    "cpu": os.environ.get("EACHPROMPT_IMAGE_CPU", "ghcr.io/eachprompt/cpu:0.1.0"),
    "rollout": os.environ.get("EACHPROMPT_IMAGE_ROLLOUT", "ghcr.io/eachprompt/rollout:0.1.0"),
    "trainer": os.environ.get("EACHPROMPT_IMAGE_TRAINER", "ghcr.io/eachprompt/trainer:0.1.0"),
}
"""One image per kind of machine (see containers/); name yours by tag or digest when registering."""


def _at_least_one(variable: str) -> int:
    """Read a count from the environment; 1 where nobody says otherwise.

    Raises:
        SettingsError: it is no count.
    """
    text = os.environ.get(variable, "1")
    if not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"{variable} is '{text}'; give a whole number from 1 on")
    return int(text)


NODES = _at_least_one("EACHPROMPT_NODES")
"""Nodes of every stage that may have several; more than one needs Kubeflow's training operator."""
PROCESSES = _at_least_one("EACHPROMPT_PROCESSES")
"""Processes of such a stage on each of its nodes: one per GPU that trains.

Both are read when the workflows are registered, as the images are, and travel with the pods.
"""
PRIMARY = "primary"
_TABLE_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem}td{padding:.3rem 1.5rem .3rem 0;"
    "border-bottom:1px solid #ddd}td+td{text-align:right;font-variant-numeric:tabular-nums}"
)


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
    """tasks.<package>.task holds the shell; the function has the stage's name."""
    machine: Machine
    image: str
    hours: float
    """Limit of one attempt."""
    retries: int = 0
    """Of recoverable errors; on a cluster, of lost nodes too."""
    interruptible: bool = False
    """May run on preemptible nodes: only what goes on from its last committed step."""
    grace_s: int = 0
    """Between SIGTERM and SIGKILL: time to finish and commit the step in flight."""
    cached: bool = True
    team: bool = False
    """Its engines may span processes: it runs in NODES * PROCESSES of them."""


STAGES = {
    # What looks at the world outside (files, stores, registries) always runs.
    "check_settings": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "with_seed": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "open_store": Stage("intake", SMALL, "cpu", hours=0.5, cached=False),
    "ingest": Stage("curation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ingest_base": Stage("foundation", LARGE, "cpu", hours=12, retries=2, cached=False),
    "pretrain": Stage("foundation", H100_NODE, "trainer", hours=24, retries=2),
    "curate": Stage("curation", LARGE, "cpu", hours=24, retries=2),
    "fit_settings": Stage("curation", SMALL, "cpu", hours=1, retries=2, cached=False),
    "sft": Stage("sft", H100_NODE, "trainer", hours=24 * 7, retries=3, team=True),
    # Reads files from outside.
    "collect_comparisons": Stage("judge_training", SMALL, "cpu", hours=2, retries=2, cached=False),
    "measure_judge": Stage("judge_training", H100_NODE, "trainer", hours=24, retries=3),
    "merge": Stage("merge", LARGE, "cpu", hours=6, retries=2),
    "grade": Stage("curation", H100_NODE, "rollout", hours=48, retries=3, team=True),
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
    "evaluate": Stage("evaluation", H100_NODE, "rollout", hours=24, retries=3, team=True),
    "pool": Stage("evaluation", SMALL, "cpu", hours=2, retries=2),
    "agreement": Stage("evaluation", SMALL, "cpu", hours=2, cached=False),
    "compare": Stage("evaluation", SMALL, "cpu", hours=2, retries=2),
    "vary": Stage("ablation", SMALL, "cpu", hours=0.5),
    "tabulate": Stage("ablation", SMALL, "cpu", hours=2, retries=2, cached=False),
    "release": Stage("release", LARGE, "cpu", hours=6, retries=2, cached=False),
    "summary": Stage("report", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "audit": Stage("audit", LARGE, "cpu", hours=12, retries=2, cached=False),
    "ledger": Stage("ledger", SMALL, "cpu", hours=2, retries=2, cached=False),
    "replay": Stage("replay", SMALL, "cpu", hours=1, retries=2, cached=False),
    "mismatch": Stage("mismatch", LARGE, "cpu", hours=2, retries=2, cached=False),
    "find_start": Stage("retraining", SMALL, "cpu", hours=1, retries=2, cached=False),
    "watch": Stage("retraining", LARGE, "cpu", hours=12, retries=2, cached=False),
    "leave": Stage("retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "weigh": Stage("retraining", SMALL, "cpu", hours=1, retries=2, cached=False),
    "stop": Stage("retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "conclude": Stage("retraining", SMALL, "cpu", hours=0.5, retries=2, cached=False),
    "retrain_summary": Stage("report", SMALL, "cpu", hours=0.5, retries=2, cached=False),
}


def shell(
    name: str,
) -> Callable[[Callable[Args, Result]], Callable[Args, Result]]:
    """Make a function the Flyte task of one stage of the table; its errors are told apart."""

    def make(function: Callable[Args, Result]) -> Callable[Args, Result]:
        arguments = task_arguments(name)
        if STAGES[name].team and NODES * PROCESSES > 1:
            body = _in_processes(function, STAGES[name], arguments)
        else:
            body = recoverable(function)
        # In a workflow a call gives promises of the results; to a reader they are the results.
        return cast("Callable[Args, Result]", task(body, **arguments))

    return make


def _in_processes(
    function: Callable[Args, Result], stage: Stage, arguments: dict[str, Any]
) -> Callable[Args, Result | None]:
    """Make a stage's function and its task's arguments those of several processes.

    Raises:
        SettingsError: what starts processes is not installed.
    """
    if importlib.util.find_spec("flytekitplugins") is None:
        if in_pod():  # of another stage, whose file and image this is
            return recoverable(function)
        raise SettingsError(
            f"EACHPROMPT_PROCESSES {PROCESSES} and EACHPROMPT_NODES {NODES} need the package "
            "flytekitplugins-kfpytorch, part of every lock file but lock_cpu.txt"
        )
    # Imported here: an installation for one process has no Elastic plugin.
    from tasks.platform.elastic import in_team, team

    arguments |= {"task_config": team(stage.grace_s), "shared_memory": True}
    return in_team(function)


def subworkflow(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Make wiring a Flyte workflow that other workflows call, typed as the function it is."""
    return cast("Callable[Args, Result]", workflow(function))


def either(
    name: str, question: bool, then: Callable[[], Result], otherwise: Callable[[], Result]
) -> Result:
    """Wire a branch of a workflow: the promise of a yes or no decides which side runs.

    The sides are given as functions because Flyte looks at what is called between its
    `if_` and its `then`.
    """
    answer = cast("Promise", question).is_true()
    yes = conditional(name).if_(answer).then(cast("Promise", then()))
    return cast("Result", cast("Condition", yes).else_().then(cast("Promise", otherwise())))


def task_arguments(name: str) -> dict[str, Any]:
    """Return the arguments of Flyte's `task` for one stage of the table."""
    stage = STAGES[name]
    needs = Resources(
        cpu=stage.machine.cpu,
        mem=stage.machine.memory,
        ephemeral_storage=stage.machine.disk,
        gpu=str(stage.machine.gpus) if stage.machine.gpus else None,
    )
    return {
        "container_image": IMAGES[stage.image],
        "requests": needs,
        # Kubernetes takes a GPU only if the limit equals the request.
        "limits": needs,
        "accelerator": H100 if stage.machine.gpus else None,
        "retries": stage.retries,
        "timeout": timedelta(hours=stage.hours),
        "interruptible": stage.interruptible,
        "pod_template": _pod(stage.grace_s) if stage.grace_s else None,
        "cache": _cache(name) if stage.cached else False,
        "environment": _processes(),
        "enable_deck": True,
        "deck_fields": (),
    }


def code_digest(name: str) -> str:
    """Hash the source files that the result of a stage follows from."""
    return shell_digest(f"tasks.{STAGES[name].package}.task", name)


def recoverable(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Tell Flyte which errors are worth another try; it takes every other one as final."""

    @functools.wraps(function)
    def run(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except RETRYABLE as error:
            raise FlyteRecoverableException(f"{type(error).__name__}: {error}") from error
        except PipelineError as error:
            if _is_typed_by_hand():
                # Who can act needs the message; `pyflyte -v run` shows where it came from.
                raise click.ClickException(f"{type(error).__name__}: {error}") from error
            raise

    return run


def _is_typed_by_hand() -> bool:
    """True below `pyflyte run` on this machine, unless it was asked for more words."""
    command = click.get_current_context(silent=True)
    state = FlyteContextManager.current_context().execution_state
    if command is None or state is None or not state.is_local_execution():
        return False
    return not command.find_root().params.get("verbose")


def checkpoint() -> Checkpoint | None:
    """Return Flyte's checkpoint of this attempt: the next attempt can read what it holds."""
    try:
        return current_context().checkpoint
    except NotImplementedError:  # the platform has none
        return None


def deck(html: str) -> None:
    """Show a self-contained page on the task's deck, in a frame of its own."""
    style = "width:100%;height:90vh;border:0"
    Deck("Report", f'<iframe srcdoc="{markup.escape(html)}" style="{style}"></iframe>')


def deck_of_facts(title: str, facts: Mapping[str, float | int | str]) -> None:
    """Show what a stage counted as a table on its deck."""
    shown = {
        name: f"{value:,.6g}" if isinstance(value, float) else str(value)
        for name, value in facts.items()
    }
    rows = "".join(
        f"<tr><td>{markup.escape(name)}</td><td>{markup.escape(value)}</td></tr>"
        for name, value in shown.items()
    )
    deck(f"<style>{_TABLE_STYLE}</style><h1>{markup.escape(title)}</h1><table>{rows}</table>")


def _cache(name: str) -> Cache:
    # The execution is when, not what: the same work in another run is the same result.
    return Cache(version=code_digest(name)[:32], serialize=True, ignored_inputs=("execution",))


def in_pod() -> bool:
    """True in a container on a cluster, where each stage has an image of its own."""
    return "FLYTE_INTERNAL_EXECUTION_ID" in os.environ


def _processes() -> dict[str, str] | None:
    """What a pod must know to make the same tasks of this table as registration did."""
    if NODES * PROCESSES == 1:
        return None
    return {"EACHPROMPT_NODES": str(NODES), "EACHPROMPT_PROCESSES": str(PROCESSES)}


def _pod(grace_s: int) -> PodTemplate:
    containers = [V1Container(name=PRIMARY)]
    pod = V1PodSpec(containers=containers, termination_grace_period_seconds=grace_s)
    return PodTemplate(primary_container_name=PRIMARY, pod_spec=pod)
