"""A stage in several processes, as Flyte's Elastic plugin starts them.

On one node the processes are those of an ordinary pod; on several, Kubeflow's training operator
starts one pod per node (a PyTorchJob) and torchrun's rendezvous brings them together. Locally the
processes are real as well. Rank 0 runs the stage, the others serve its engines (engines/team);
what rank 0 returns is the task's result.

Differs from the plugin: an error keeps its class and message; a process that was ended by a signal,
and SIGTERM to all of them, are retried; the time between SIGTERM and SIGKILL is that of the
stage, where torchrun has 30 s; and an agent notices that the machine of the rendezvous is gone.
"""
# pyright: reportMissingImports=false

import functools
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from flytekit.exceptions.user import FlyteUserRuntimeException
from flytekit.extend import IgnoreOutputs, TaskPlugins
from flytekitplugins.kfpytorch import Elastic
from flytekitplugins.kfpytorch.task import PytorchElasticFunctionTask
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousConnectionError

from tasks.engines.team.silence import limit_silence
from tasks.errors import (
    DataError,
    EngineError,
    JudgeError,
    PipelineError,
    PreemptionError,
    SettingsError,
    TamperError,
)
from tasks.platform.deck import deck_of_team
from tasks.platform.resources import NODES, PROCESSES
from tasks.platform.retries import recoverable

Args = ParamSpec("Args")
Result = TypeVar("Result")

TORCHRUN_GRACE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
"""Seconds between SIGTERM and SIGKILL; the plugin has no parameter for it."""
DEFAULT_GRACE_S = 30
_LOOK_EVERY_S = 5
_KINDS: dict[str, type[PipelineError]] = {
    kind.__name__: kind
    for kind in (SettingsError, DataError, TamperError, EngineError, PreemptionError, JudgeError)
}
_NAMED = re.compile(rf"^({'|'.join(_KINDS)}): (.*)", re.DOTALL)


@dataclass
class Team(Elastic):
    """How many processes a stage has, and how long they may take to end."""

    grace_s: int = DEFAULT_GRACE_S


def team(grace_s: int) -> Team:
    """Lay a stage out over the nodes and processes of this registration.

    Args:
        grace_s: between SIGTERM and SIGKILL; 0 = torchrun's own.
    """
    return Team(
        nnodes=NODES,
        nproc_per_node=PROCESSES,
        monitor_interval=1,
        increase_shared_mem=False,  # deprecated for the task's own argument, which the shell sets
        grace_s=grace_s or DEFAULT_GRACE_S,
    )


class TeamTask(PytorchElasticFunctionTask):
    """The plugin's task, with errors mapped to this project's classes."""

    def __init__(self, task_config: Team, task_function: Callable[..., Any], **kwargs: Any) -> None:
        super().__init__(task_config, task_function, **kwargs)
        self._grace_s = task_config.grace_s

    def execute(self, **kwargs: Any) -> Any:
        """Start the processes and return what rank 0 returns."""
        return recoverable(self._run)(**kwargs)

    def _run(self, **kwargs: Any) -> Any:
        # The error contains what torchrun's agent would log.
        for name in ("torch.distributed.elastic", "torch.multiprocessing.spawn"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # Read by torchrun's agent in this process.
        os.environ[TORCHRUN_GRACE] = str(self._grace_s)
        try:
            with deck_of_team(), limited_silence():
                return super().execute(**kwargs)
        except FlyteUserRuntimeException as error:
            error_of_rank = (
                cause(error.value) if isinstance(error.value, ChildFailedError) else None
            )
            if error_of_rank is None:
                raise
            raise error_of_rank from error
        except RendezvousConnectionError as error:
            raise EngineError(
                "torchrun's rendezvous does not answer: its machine is gone, or the network to it"
            ) from error
        except IgnoreOutputs as error:
            # A signal; otherwise it only says that rank 0 is on another node.
            if isinstance(error.__context__, SignalException):
                raise PreemptionError(f"{error.__context__}; committed steps are kept") from error
            raise


@contextmanager
def limited_silence() -> Iterator[None]:
    """While the block runs, break connections of this process to machines that fall silent.

    torchrun's agent opens its connections inside, and asks the rendezvous every second.
    """
    end = threading.Event()

    def look() -> None:
        while not end.wait(_LOOK_EVERY_S):
            limit_silence()

    looker = threading.Thread(target=look, name="silence", daemon=True)
    looker.start()
    try:
        yield
    finally:
        end.set()
        looker.join()


def cause(failed: ChildFailedError) -> PipelineError | None:
    """Return the error of the process that failed first; None if it is not one of ours."""
    rank, failure = failed.get_first_failure()
    message: Any = failure.message
    if isinstance(message, str):  # the process ended without reporting an error
        return EngineError(f"rank {rank}: {message}")
    match = _NAMED.match(str(message["message"]))
    return _KINDS[match[1]](match[2]) if match else None


def in_team(function: Callable[Args, Result]) -> Callable[Args, Result | None]:
    """Run a stage in rank 0, while the other ranks serve its engines."""

    @functools.wraps(function)
    def run(*args: Args.args, **kwargs: Args.kwargs) -> Result | None:
        # Imported in the processes of the stage: registering it needs no engine.
        from tasks.engines.team.in_team import in_team as inside

        return inside(function)(*args, **kwargs)

    return run


TaskPlugins.register_pythontask_plugin(Team, TeamTask)
