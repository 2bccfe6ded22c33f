# pyright: reportMissingImports=false
"""vLLM in a separate, monitored process that is restarted when it dies or hangs.

vLLM's engine reports every step; an engine that has work and takes no step for `hang_s` is
considered hung, and so is one whose processes compute nothing, or of which one is stopped, for 45
looks. A new process is opened on the folder of the current weights. Before it receives
any calls, the digest it reads there and its log-probabilities of a fixed sequence must equal those
recorded before. Then the calls in flight are issued again, with the same seeds and tokens.
"""

import logging
import queue
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm import RequestOutput
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from tasks.engines.rollout_vllm.backend import Call
from tasks.engines.rollout_vllm.completions import logprobs_call, logprobs_of
from tasks.engines.rollout_vllm.process import Ended, LostProcess, Process
from tasks.engines.rollout_vllm.staging import Staging
from tasks.engines.rollout_vllm.update import WeightUpdate, sync_weights
from tasks.errors import EngineError

LOG = logging.getLogger(__name__)
MAX_FRUITLESS_RESTARTS = 3
"""Consecutive restarts without a completion between them."""
CANARY_TOKENS = np.arange(2, 34, dtype=np.int32)
"""Token ids that exist in every vocabulary."""
CANARY_GAP = {"float32": 1e-4, "bfloat16": 2e-2, "float16": 2e-3}
"""Largest mean |dlogp| in nats of the same weights after a restart."""
LOOKS_PER_HANG = 4
"""Number of checks for progress within hang_s."""
LONGEST_LOOK_S = 1.0

WeightIdentity = tuple[str, NDArray[np.float32]]
"""Digest of the weights that a process has, and its log-probabilities of the canary."""


class OwnProcess:
    """A Backend on vLLM's asynchronous engine.

    Args:
        devices: which GPUs of the node; none on a machine without.
        hang_s: time without progress after which the process is considered hung, also at start.
        group: 'nccl' or 'gloo' to send weights over; '' to send them as files.
    """

    def __init__(
        self,
        options: dict[str, Any],
        staging: Staging,
        *,
        devices: Sequence[str],
        hang_s: float,
        group: str,
    ) -> None:
        self.restarts = 0
        self.reissued = 0
        self._options: dict[str, Any] = options | {"disable_log_stats": True}
        self._staging = staging
        self._devices = devices
        self._hang_s = hang_s
        self._group = group
        self._folder = Path(options["model"])
        self._running = 0
        self._fruitless = 0
        self._process = self._start()
        self._digest, self._canary = self._read_identity()
        self._before = (self._folder, self._digest, self._canary)

    @property
    def cache_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self._process.cache_tokens

    @property
    def max_tokens(self) -> int:
        """Longest sequence that the cache holds; at most the model's positions."""
        return self._process.max_tokens

    def run(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Yield outputs as they end, from this engine or from its replacement after a restart."""
        pending = {call.number: call for call in calls}
        self._running += 1
        try:
            while pending:
                for number, answer in self._answers(list(pending.values())):
                    del pending[number]
                    self._fruitless = 0
                    yield number, answer
                if pending:
                    self._restart(f"{len(pending)} sequences were in flight")
                    self.reissued += len(pending)
        finally:
            self._running -= 1

    def install(self, weights: Iterator[tuple[str, torch.Tensor]]) -> str:
        """Send weights, and keep them in a folder for a restart.

        Raises:
            EngineError: the tensors do not fit, or the update failed; the engine is unchanged.
        """
        return sync_weights([self], self._staging, weights)

    def begin(self) -> WeightUpdate:
        """Start a weight sync."""
        if self._running:
            raise EngineError(
                "weights were sent while rollouts were being generated; finish those first"
            )
        self._before = (self._folder, self._digest, self._canary)
        return WeightUpdate(self._process)

    def end(self, update: WeightUpdate, folder: Path) -> str:
        """Finish a weight sync; if the process was lost, open a new one on the folder."""
        self._folder = folder
        try:
            self._digest = update.end(folder)
            self._canary = self._probe()
        except LostProcess as error:
            LOG.warning("vLLM was lost in a weight update (%s) and is restarted", error)
            self._digest, self._canary = self._replace_process()
        return self._digest

    def abort(self, update: WeightUpdate) -> None:
        """Open a new process on the previous weights, if they were changed."""
        folder, *_ = self._before
        if update.has_started or update.failure is not None or self._folder != folder:
            self._folder, self._digest, self._canary = self._before
            self._restart("a weight update was interrupted; restoring the previous weights")
            self._fruitless = 0

    def sleep(self) -> None:
        """Do nothing: its GPUs are dedicated."""

    def close(self) -> None:
        """End the process."""
        self._process.kill()

    def _answers(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Yield what this process completes; end early if it died or hung.

        Raises:
            EngineError: it refuses a call, so that a restart would not help.
        """
        ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        pulse = self._process.pulse
        call_off = self._process.submit(calls, ended)
        remaining, is_dead = len(calls), False
        try:
            # After a crash, earlier completions are still in the queue.
            while remaining and not (is_dead and ended.empty()):
                try:
                    number, answer = ended.get(timeout=self._look_s)
                except queue.Empty:
                    if time.monotonic() - pulse.last > self._hang_s or self._process.hangs():
                        LOG.warning("vLLM computes nothing, or took no step for %s s", self._hang_s)
                        return
                    continue
                if isinstance(answer, RequestOutput):
                    remaining -= 1
                    yield number, answer
                elif isinstance(answer, EngineDeadError | EngineGenerateError):
                    LOG.warning("vLLM's process is dead: %r", answer)
                    is_dead = True
                else:
                    raise EngineError(f"vLLM refused a sequence: {answer}") from answer
        finally:
            call_off()

    def _restart(self, why: str) -> None:
        """Replace the process by a new one, verified to hold the current weights.

        Raises:
            EngineError: several restarts in a row completed nothing.
        """
        while True:
            self._fruitless += 1
            if self._fruitless > MAX_FRUITLESS_RESTARTS:
                raise EngineError(
                    f"vLLM was restarted {MAX_FRUITLESS_RESTARTS} times and completed nothing; "
                    f"last cause: {why}"
                )
            LOG.warning("vLLM is restarted: %s", why)
            try:
                digest, canary = self._replace_process()
            except LostProcess as error:
                why = str(error)
                continue
            gap = float(np.abs(canary - self._canary).mean())
            if digest == self._digest and gap <= CANARY_GAP[self._options["dtype"]]:
                return
            why = f"digest {digest[:12]} for {self._digest[:12]}, canary off by {gap:.2g} nats"

    def _replace_process(self) -> WeightIdentity:
        """Replace the process by one on the current folder; return the identity of its weights.

        Raises:
            LostProcess: it did not start.
        """
        self._process.kill()
        self.restarts += 1
        self._process = self._start()
        return self._read_identity()

    def _start(self) -> Process:
        options: dict[str, Any] = self._options | {"model": str(self._folder)}
        return Process(options, self._devices, hang_s=self._hang_s, group=self._group)

    def _read_identity(self) -> WeightIdentity:
        return self._process.folder_digest(self._folder), self._probe()

    def _probe(self) -> NDArray[np.float32]:
        return logprobs_of(self._process.complete(logprobs_call(0, CANARY_TOKENS)), CANARY_TOKENS)

    @property
    def _look_s(self) -> float:
        return min(LONGEST_LOOK_S, self._hang_s / LOOKS_PER_HANG)
