# pyright: reportMissingImports=false
"""vLLM in a process of its own, watched: one that dies or falls silent is started again.

Completions come one by one through a queue, from an event loop in a thread of its own. vLLM's
engine reports every step it takes; an engine that has work and takes none for `hang_s` counts as
hung. A new one is opened on the folder of the current weights. Before it gets any traffic, the
digest it reads there and its log-probabilities of a fixed sequence must be those of before. Then
the calls that were in flight are made again: the same calls, so with the same tokens.
"""

import asyncio
import gc
import logging
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from vllm import RequestOutput
from vllm.config import VllmConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.utils.network_utils import close_sockets
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.core_client import MPClient
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError
from vllm.v1.engine.utils import CoreEngineProcManager
from vllm.v1.metrics.loggers import StatLoggerBase

from tasks.engines.rollout_vllm.backend import Call
from tasks.engines.rollout_vllm.completions import probe_call, probe_of
from tasks.engines.rollout_vllm.environment import apart_environment, changed_environment
from tasks.engines.rollout_vllm.staging import Staging, files_of
from tasks.errors import EngineError

LOG = logging.getLogger(__name__)
MAX_FRUITLESS_RESTARTS = 3
"""In a row, without one completion between them."""
CANARY_TOKENS = np.arange(2, 34, dtype=np.int32)
"""Ids that every vocabulary has."""
CANARY_GAP = {"float32": 1e-4, "bfloat16": 2e-2}
"""Mean |dlogp| in nats that the same weights may show after a restart."""
LOOKS_PER_HANG = 4
"""How often the silence is measured while it grows to hang_s."""
LONGEST_LOOK_S = 1.0

Value = TypeVar("Value")
Ended = tuple[int, RequestOutput | BaseException]


class Pulse(StatLoggerBase):
    """Hears of every step of the engine, and remembers when the last was."""

    def __init__(self, vllm_config: VllmConfig | None = None, engine_index: int = 0) -> None:
        self.beat()

    def beat(self) -> None:
        """Note a sign of life."""
        self.last = time.monotonic()

    def record(self, *stats: object, **more: object) -> None:
        """Called by vLLM after a step."""
        self.beat()

    def log_engine_initialized(self) -> None:
        """Called by vLLM once."""


class Lost(EngineError):
    """The process is dead, silent, or did not start."""


class OwnProcess:
    """A Backend on vLLM's asynchronous engine.

    Args:
        devices: which GPUs of the node; none on a machine without.
        hang_s: silence after which the process counts as hung, also of one that starts.
    """

    def __init__(
        self, options: dict[str, Any], staging: Staging, *, devices: Sequence[str], hang_s: float
    ) -> None:
        self.restarts = 0
        self.reissued = 0
        self._options: dict[str, Any] = options | {"disable_log_stats": True}
        self._staging = staging
        self._devices = devices
        self._hang_s = hang_s
        self._pulse = Pulse()
        self._folder = Path(options["model"])
        self._made = 0
        self._running = 0
        self._fruitless = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._engine = self._start()
        self._digest, self._canary = self._seen()

    def run(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Yield answers as they end, from this engine or from those that take its place."""
        pending = {call.number: call for call in calls}
        self._running += 1
        try:
            while pending:
                for number, answer in self._answers(list(pending.values())):
                    del pending[number]
                    self._fruitless = 0
                    yield number, answer
                if pending:
                    self._revive(f"{len(pending)} sequences were in flight")
                    self.reissued += len(pending)
        finally:
            self._running -= 1

    def install(self, weights: Iterator[tuple[str, torch.Tensor]]) -> str:
        """Write the weights to a folder, then update to it.

        Raises:
            EngineError: the tensors do not fit; the engine is as before.
        """
        folder = self._staging.write(weights)
        digest = self.install_folder(folder)
        self._staging.keep_only(folder)
        return digest

    def install_folder(self, folder: Path) -> str:
        """Pause, update, forget cached prefixes, go on; a failure opens a new engine on it."""
        if self._running:
            raise EngineError("weights came while rollouts were being generated; end those first")
        try:
            self._digest = self._update(folder)
            self._folder = folder
            self._canary = self._ask(self._probe())
        except Lost as error:
            LOG.warning("vLLM was lost in a weight update (%s) and is started again", error)
            self._folder = folder
            self._kill()
            self.restarts += 1
            self._engine = self._start()
            self._digest, self._canary = self._seen()
        return self._digest

    def rest(self) -> None:
        """Nothing: its GPUs are its own."""

    def close(self) -> None:
        """End the process and the thread."""
        self._kill()
        asyncio.run_coroutine_threadsafe(_end_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        del self._engine
        # Its parts refer to each other; left to the end of the process they would fail there.
        gc.collect()

    def _answers(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Yield what this engine completes; ends early where it died or hung.

        Raises:
            EngineError: it refuses a call, so that starting it again would not help.
        """
        ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        tasks = self._ask(self._submit(calls, ended))
        self._pulse.beat()
        left, lost = len(calls), False
        try:
            # After a death, what had been completed before it still lies in the queue.
            while left and not (lost and ended.empty()):
                try:
                    number, answer = ended.get(timeout=self._look_s)
                except queue.Empty:
                    if time.monotonic() - self._pulse.last > self._hang_s:
                        LOG.warning("vLLM has taken no step for %.0f s", self._hang_s)
                        return
                    continue
                if isinstance(answer, RequestOutput):
                    left -= 1
                    yield number, answer
                elif isinstance(answer, EngineDeadError | EngineGenerateError):
                    LOG.warning("vLLM's process is dead: %r", answer)
                    lost = True
                else:
                    raise EngineError(f"vLLM refused a sequence: {answer}") from answer
        finally:
            for task in tasks:
                self._loop.call_soon_threadsafe(task.cancel)

    async def _submit(
        self, calls: Sequence[Call], ended: queue.SimpleQueue[Ended]
    ) -> list[asyncio.Task[RequestOutput]]:
        tasks = []
        for call in calls:
            self._made += 1
            task = asyncio.create_task(self._complete(call, str(self._made)))
            task.add_done_callback(_deliver(call.number, ended))
            tasks.append(task)
        return tasks

    async def _complete(self, call: Call, name: str) -> RequestOutput:
        prompt: Any = {"prompt_token_ids": call.tokens}
        async for output in self._engine.generate(prompt, call.params, name):
            if output.finished:
                return output
        raise EngineDeadError

    def _update(self, folder: Path) -> str:
        """Do vLLM's update of all workers, file by file; each step has hang_s."""
        self._ask(self._engine.pause_generation())
        self._tell("start_weight_update")
        for path in files_of(folder):
            self._tell("update_weights", update_info={"path": str(path)})
        self._tell("finish_weight_update")
        digests = self._tell("received_digest")
        if not self._ask(self._engine.reset_prefix_cache()):
            raise EngineError("vLLM kept prefixes computed with the weights of before")
        self._ask(self._engine.resume_generation())
        return digests[0]

    def _tell(self, name: str, **arguments: Any) -> list[Any]:
        """Call all workers."""
        return self._ask(self._engine.collective_rpc(name, kwargs=arguments))

    async def _probe(self) -> NDArray[np.float32]:
        self._made += 1
        answer = await self._complete(probe_call(0, CANARY_TOKENS), f"canary {self._made}")
        return probe_of(answer, CANARY_TOKENS)

    def _seen(self) -> tuple[str, NDArray[np.float32]]:
        """Return the digest and the canary's log-probabilities as the process has them."""
        digests = self._tell("folder_digest", folder=str(self._folder))
        return digests[0], self._ask(self._probe())

    def _revive(self, why: str) -> None:
        """Put a new engine in place of this one, proven to hold the current weights.

        Raises:
            EngineError: several in a row completed nothing.
        """
        while True:
            self._fruitless += 1
            if self._fruitless > MAX_FRUITLESS_RESTARTS:
                raise EngineError(
                    f"vLLM was started again {MAX_FRUITLESS_RESTARTS} times and completed nothing; "
                    f"at last: {why}"
                )
            LOG.warning("vLLM is started again: %s", why)
            self._kill()
            self.restarts += 1
            try:
                self._engine = self._start()
                digest, canary = self._seen()
            except Lost as error:
                why = str(error)
                continue
            gap = float(np.abs(canary - self._canary).mean())
            if digest == self._digest and gap <= CANARY_GAP[self._options["dtype"]]:
                return
            why = f"digest {digest[:12]} for {self._digest[:12]}, canary off by {gap:.2g} nats"

    def _start(self) -> AsyncLLM:
        """Open vLLM on the folder of the current weights.

        Raises:
            Lost: it did not start.
        """
        options: dict[str, Any] = self._options | {"model": str(self._folder)}

        async def opened() -> AsyncLLM:
            with changed_environment(apart_environment(self._devices)):
                return AsyncLLM.from_engine_args(
                    AsyncEngineArgs(**options), stat_loggers=[lambda *_: self._pulse]
                )

        # vLLM itself gives a process that starts VLLM_ENGINE_READY_TIMEOUT_S (ten minutes).
        try:
            return asyncio.run_coroutine_threadsafe(opened(), self._loop).result()
        # vLLM's failures have no class in common.
        except Exception as error:
            raise Lost(f"vLLM did not start on {self._folder}: {error}") from error

    def _kill(self) -> None:
        """End the process at once: one that hangs does not listen."""
        client = self._engine.engine_core
        assert isinstance(client, MPClient)
        manager = client.resources.engine_manager
        assert isinstance(manager, CoreEngineProcManager)
        for process in manager.processes:
            process.kill()
        self._engine.shutdown(timeout=0)
        asyncio.run_coroutine_threadsafe(_closed(client), self._loop).result()

    def _ask(self, question: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine on the loop.

        Raises:
            Lost: no answer for hang_s, or no process that could answer.
            EngineError: vLLM refused.
        """
        future = asyncio.run_coroutine_threadsafe(question, self._loop)
        try:
            return future.result(timeout=self._hang_s)
        except TimeoutError as error:
            future.cancel()
            raise Lost(f"vLLM gave no answer for {self._hang_s:.0f} s") from error
        except (EngineDeadError, EngineGenerateError) as error:
            raise Lost(f"vLLM's process is dead: {error!r}") from error
        # What a worker raises comes without its class.
        except Exception as error:
            raise EngineError(f"vLLM failed: {error}") from error

    @property
    def _look_s(self) -> float:
        return min(LONGEST_LOOK_S, self._hang_s / LOOKS_PER_HANG)


async def _closed(client: MPClient) -> None:
    """Close what vLLM leaves open: its context would warn when it is collected."""
    sockets = [client.input_socket, client.resources.output_socket]
    close_sockets([one for one in sockets if one is not None])
    if not client.resources.ctx.closed:
        client.resources.ctx.term()


async def _end_others() -> None:
    """Cancel every task of this loop but this one, and wait for their ends."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _deliver(
    number: int, ended: queue.SimpleQueue[Ended]
) -> Callable[[asyncio.Task[RequestOutput]], None]:
    """Return what puts a task's end into the queue, unless it was called off."""

    def deliver(task: asyncio.Task[RequestOutput]) -> None:
        if not task.cancelled():
            ended.put((number, task.exception() or task.result()))

    return deliver
