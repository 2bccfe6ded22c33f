# pyright: reportMissingImports=false
"""One vLLM in a separate process: start it, make calls, and kill it immediately if needed.

vLLM's asynchronous engine runs on an event loop in a separate thread, which ends with it.
"""

import asyncio
import gc
import logging
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import psutil
from vllm import RequestOutput
from vllm.config import VllmConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.utils.network_utils import close_sockets
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.core_client import MPClient
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError
from vllm.v1.engine.utils import CoreEngineProcManager
from vllm.v1.metrics.loggers import StatLoggerBase

from tasks.engines.activity import STILL_LOOKS, Watch
from tasks.engines.rollout_vllm.backend import Call
from tasks.engines.rollout_vllm.broadcast import BroadcastLink
from tasks.engines.rollout_vllm.environment import opening, separate_environment
from tasks.errors import EngineError

LOG = logging.getLogger(__name__)
LOOK_S = 1.0
"""Interval of liveness checks of a process with pending calls."""
DEATH_S = 10.0
"""Longest time from the death of a worker to that of its engine."""
READ_BYTES_PER_S = 2e8
"""Least rate at which a model is read: a network disk that the engines of several nodes share. 490
GB of a model of 245B parameters then take 41 minutes."""

Value = TypeVar("Value")
Ended = tuple[int, RequestOutput | BaseException]


class LostProcess(EngineError):
    """The process is dead, hangs, or did not start."""


class Pulse(StatLoggerBase):
    """Receives a notification of every engine step, and stores the time of the last one."""

    def __init__(self, vllm_config: VllmConfig | None = None, engine_index: int = 0) -> None:
        self.beat()

    def beat(self) -> None:
        """Store the current time."""
        self.last = time.monotonic()

    def record(self, *stats: object, **more: object) -> None:
        """Called by vLLM after a step."""
        self.beat()

    def log_engine_initialized(self) -> None:
        """Called by vLLM once."""


class Process:
    """vLLM's asynchronous engine.

    Args:
        options: of vLLM's EngineArgs.
        devices: which GPUs of the node; none on a machine without.
        hang_s: timeout of a call, once the process has started.
        group: 'nccl' or 'gloo' to send weights over; '' to send them as files.

    Raises:
        LostProcess: it did not start.
    """

    def __init__(
        self, options: dict[str, Any], devices: Sequence[str], *, hang_s: float, group: str
    ) -> None:
        self.pulse = Pulse()
        self.link: BroadcastLink | None = None
        self._hang_s = hang_s
        self._made = 0
        self._over = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        # Without a limit: VLLM_ENGINE_READY_TIMEOUT_S begins when the model has been read.
        try:
            self._engine = self._on_loop(self._open_engine(options, devices)).result()
            self._family = _family(self._engine)
            self._watch = Watch(self._family)
        # vLLM's errors have no common base class.
        except Exception as error:
            self._end_loop()
            raise LostProcess(f"vLLM did not start on {options['model']}: {error}") from error
        if group:
            self._connect(
                BroadcastLink(group, workers=options["tensor_parallel_size"], limit_s=hang_s)
            )

    def hangs(self) -> bool:
        """Look at the processes, which have calls to answer, every LOOK_S; True if they hang."""
        return self._watch.hangs()

    def submit(self, calls: Sequence[Call], ended: queue.SimpleQueue[Ended]) -> Callable[[], None]:
        """Start calls; their outputs or errors are put into the queue.

        Returns:
            A function that cancels the unfinished calls.
        """

        async def start() -> list[asyncio.Task[RequestOutput]]:
            tasks = []
            for call in calls:
                task = asyncio.create_task(self._complete(call))
                task.add_done_callback(_deliver(call.number, ended))
                tasks.append(task)
            return tasks

        tasks = self._ask(start())
        self.pulse.beat()

        def call_off() -> None:
            # The tasks are those of the loop, which runs in another thread.
            for task in tasks:
                self._loop.call_soon_threadsafe(task.cancel)

        return call_off

    def complete(self, call: Call) -> RequestOutput:
        """Make one call and wait for it."""
        return self._ask(self._complete(call))

    @property
    def cache_tokens(self) -> int:
        """Tokens that the KV cache holds, as the process said when it was ready."""
        return int(self._engine.vllm_config.cache_config.kv_cache_size_tokens or 0)

    @property
    def max_tokens(self) -> int:
        """Longest sequence that the cache holds, as the process said when it was ready."""
        return self._engine.vllm_config.model_config.max_model_len

    def call(self, name: str, **arguments: Any) -> Future[list[Any]]:
        """Call all workers, without waiting."""
        return self._on_loop(self._engine.collective_rpc(name, kwargs=arguments))

    def call_and_wait(self, name: str, **arguments: Any) -> list[Any]:
        """Call all workers and return their results."""
        return self.answer(self.call(name, **arguments))

    def folder_digest(self, folder: Path) -> str:
        """Digest of the model directory that the process was opened on, as its worker reads it."""
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        reading = self.call("folder_digest", folder=str(folder))
        return self.answer(reading, more_s=size / READ_BYTES_PER_S)[0]

    def pause(self) -> None:
        """Pause generation until `resume`."""
        self._ask(self._engine.pause_generation())

    def resume(self) -> None:
        """Resume generation with an empty prefix cache.

        Raises:
            EngineError: vLLM keeps cached prefixes.
        """
        if not self._ask(self._engine.reset_prefix_cache()):
            raise EngineError("vLLM kept prefixes computed with the previous weights")
        self._ask(self._engine.resume_generation())

    def answer(self, future: Future[Value], more_s: float = 0.0) -> Value:
        """Wait for the result of a call.

        Args:
            future: of the call.
            more_s: that it may take beside hang_s.

        Raises:
            LostProcess: no result in that time, or the process hangs or is dead.
            EngineError: vLLM refused.
        """
        limit_s = self._hang_s + more_s
        until = time.monotonic() + limit_s
        # vLLM never completes a call whose process has died.
        while not wait([future], timeout=LOOK_S).done:
            if self._engine.errored or time.monotonic() > until or self.hangs():
                future.cancel()
                raise LostProcess(
                    f"vLLM is dead, has computed nothing for {STILL_LOOKS * LOOK_S:.0f} s, or did "
                    f"not respond for {limit_s:.0f} s"
                )
        try:
            return future.result()
        except (EngineDeadError, EngineGenerateError) as error:
            raise LostProcess(f"vLLM's process is dead: {error!r}") from error
        # Errors of a worker, and the death of one of several, arrive without their class.
        except Exception as error:
            if self._died():
                raise LostProcess(f"vLLM's process is dead: {error}") from error
            raise EngineError(f"vLLM failed: {error}") from error

    def _died(self) -> bool:
        """Wait whether the process dies: vLLM first waits some seconds for the other workers."""
        until = time.monotonic() + DEATH_S
        while not self._engine.errored and time.monotonic() < until:
            time.sleep(0.1)
        return self._engine.errored

    def kill(self) -> None:
        """Kill the process and its workers: a hung process does not handle requests."""
        if self._over:
            return
        self._over = True
        for process in self._family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if self.link is not None:
            try:
                self.link.close()
            except RuntimeError as error:
                LOG.warning("the group with vLLM's workers did not close: %s", error)
        self._engine.shutdown(timeout=0)
        client = self._engine.engine_core
        assert isinstance(client, MPClient)
        self._on_loop(_close_client(client)).result()
        self._end_loop()
        del self._engine, client
        # Collect reference cycles now: at interpreter exit their finalisers would fail.
        gc.collect()

    def _connect(self, link: BroadcastLink) -> None:
        """Form the group with the workers.

        Raises:
            LostProcess: they did not join; the process is killed.
        """
        self.link = link
        try:
            joining = self.call("init_weight_transfer_engine", init_info=asdict(link.meeting))
            link.open()
            self.answer(joining)
        except (EngineError, RuntimeError) as error:
            self.kill()
            raise LostProcess(
                f"vLLM's workers did not join the group of its owner: {error}"
            ) from error

    async def _open_engine(self, options: dict[str, Any], devices: Sequence[str]) -> AsyncLLM:
        with opening(options, separate_environment(devices)):
            return AsyncLLM.from_engine_args(
                AsyncEngineArgs(**options), stat_loggers=[lambda *_: self.pulse]
            )

    async def _complete(self, call: Call) -> RequestOutput:
        self._made += 1
        prompt: Any = {"prompt_token_ids": call.tokens}
        async for output in self._engine.generate(prompt, call.params, str(self._made)):
            if output.finished:
                return output
        raise EngineDeadError

    def _ask(self, question: Coroutine[Any, Any, Value]) -> Value:
        return self.answer(self._on_loop(question))

    def _on_loop(self, question: Coroutine[Any, Any, Value]) -> Future[Value]:
        return asyncio.run_coroutine_threadsafe(question, self._loop)

    def _end_loop(self) -> None:
        self._on_loop(_end_others()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _family(engine: AsyncLLM) -> list[psutil.Process]:
    """Return the engine's process and its workers, which outlive it if they hang."""
    client = engine.engine_core
    assert isinstance(client, MPClient)
    manager = client.resources.engine_manager
    assert isinstance(manager, CoreEngineProcManager)
    cores = [psutil.Process(process.pid) for process in manager.processes]
    return cores + [child for core in cores for child in core.children(recursive=True)]


async def _close_client(client: MPClient) -> None:
    """Close the client's context, which vLLM leaves open and which would warn when collected."""
    sockets = [client.input_socket, client.resources.output_socket]
    close_sockets([one for one in sockets if one is not None])
    if not client.resources.ctx.closed:
        client.resources.ctx.term()


async def _end_others() -> None:
    """Cancel every other task of this loop, and wait for their ends."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _deliver(
    number: int, ended: queue.SimpleQueue[Ended]
) -> Callable[[asyncio.Task[RequestOutput]], None]:
    """Return a callback that puts a task's result into the queue, unless it was cancelled."""

    def deliver(task: asyncio.Task[RequestOutput]) -> None:
        if not task.cancelled():
            ended.put((number, task.exception() or task.result()))

    return deliver
