# pyright: reportMissingImports=false
"""vLLM in this process: colocated with the trainer, or alone on a laptop.

Under torchrun vLLM joins the existing process group; consecutive ranks form tensor-parallel groups,
each of them a replica. All ranks open their engines together, and the ranks of a replica make the
same calls: they step in lockstep.

vLLM's groups are created once per process and reused by later engines; the process group, which
others may use, is never destroyed.
"""

import gc
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import torch
from vllm import EngineArgs, RequestOutput
from vllm.distributed import parallel_state
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine.core import EngineCore
from vllm.v1.engine.core_client import InprocClient
from vllm.v1.engine.llm_engine import LLMEngine

from tasks.engines.process_group import join_world
from tasks.engines.rollout_vllm.backend import Call, More
from tasks.engines.rollout_vllm.environment import opening
from tasks.engines.rollout_vllm.staging import Shape, check_tensors
from tasks.errors import EngineError, SettingsError

SLEEP_LEVEL = 2
"""Weights and KV cache are discarded: level 1 would copy weights that the next sync overwrites."""
WEIGHTS, CACHE = "weights", "kv_cache"
"""vLLM's tags of the memory that sleeps."""


class InProcessBackend:
    """A Backend on vLLM's offline engine."""

    restarts = 0
    reissued = 0

    def __init__(self, options: dict[str, Any], expected: Mapping[str, Shape]) -> None:
        options = dict(options)
        size = int(os.environ.get("WORLD_SIZE", "1"))
        tensor = options["tensor_parallel_size"]
        _refuse_groups(size, tensor)
        join_world()
        if size > 1:
            options["distributed_executor_backend"] = "external_launcher"
            if not torch.cuda.is_available():
                options["worker_cls"] = "tasks.engines.rollout_vllm.launched.LaunchedWorker"
        set_threads = torch.set_num_threads
        try:
            with opening(options):
                self._engine = LLMEngine.from_engine_args(EngineArgs(**options))
        finally:
            # On a CPU vLLM replaces torch's function that sets the number of threads.
            torch.set_num_threads = set_threads
        self._expected = expected
        self._whole = True
        self._sleeps = options.get("enable_sleep_mode", False)
        self._asleep: set[str] = set()
        self._made = 0

    @property
    def cache_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return int(self._engine.vllm_config.cache_config.kv_cache_size_tokens or 0)

    @property
    def max_tokens(self) -> int:
        """Longest sequence that the cache holds; at most the model's positions."""
        return self._engine.vllm_config.model_config.max_model_len

    def run(
        self,
        calls: Sequence[Call],
        more: More | None = None,
        over: Callable[[], bool] | None = None,
    ) -> Generator[tuple[int, RequestOutput]]:
        """Step until every call has ended.

        Args:
            calls: at the beginning.
            more: asked before every step.
            over: asked before every step; once it is true, calls that have tokens end with the next
                one, and the others yield nothing. When that is depends on the steps, so the cache
                begins without prefixes, as it does in a process that is started for this call.

        Raises:
            EngineError: the last weight sync was interrupted, or the engine slept after it.
        """
        if not self._whole:
            raise EngineError(
                "the engine slept, or the last weight sync was interrupted; send complete weights"
            )
        self._wake(WEIGHTS, CACHE)
        engine = self._engine
        pending: dict[str, int] = {}
        if over is not None:
            engine.reset_prefix_cache()
        try:
            self._add(calls, pending)
            while pending or more is not None:
                if more is not None and not self._add(more(), pending):
                    more = None
                if over is not None and over():
                    self._cut(pending)
                    over = None
                if pending:
                    yield from self._step(pending)
        finally:
            if pending:
                engine.abort_request(list(pending))

    def _add(self, calls: Sequence[Call] | None, pending: dict[str, int]) -> bool:
        """Start calls; False if there are no more of them."""
        for call in calls or ():
            self._made += 1
            name = str(self._made)
            self._engine.add_request(name, {"prompt_token_ids": call.tokens}, call.params)
            pending[name] = call.number
        return calls is not None

    def _step(self, pending: dict[str, int]) -> Iterator[tuple[int, RequestOutput]]:
        """Take one step; yield what has ended."""
        for output in self._engine.step():
            if isinstance(output, RequestOutput) and output.finished:
                number = pending.pop(output.request_id, None)
                if number is not None:
                    yield number, output

    def _cut(self, pending: dict[str, int]) -> None:
        """End every call that has tokens with its next one, and abort the others.

        A call that is aborted returns nothing, no routes either, but one whose limit is reached
        does; vLLM reads the limit after every token.
        """
        internal_ids = self._engine.output_processor.external_req_ids
        scheduler = self._core().scheduler
        assert isinstance(scheduler, Scheduler)
        unbegun = []
        for name in pending:
            (internal,) = internal_ids[name]
            request = scheduler.requests[internal]
            if request.num_output_tokens:
                request.max_tokens = min(request.max_tokens, request.num_output_tokens + 1)
            else:
                unbegun.append(name)
        self._engine.abort_request(unbegun)
        for name in unbegun:
            del pending[name]

    def _core(self) -> EngineCore:
        client = self._engine.engine_core
        assert isinstance(client, InprocClient)
        return client.engine_core

    def install(self, weights: Iterator[tuple[str, torch.Tensor]]) -> str:
        """Install tensors in the worker as they arrive, then drop the prefix cache.

        Tensors are installed layer by layer: nothing is written, and only incomplete layers are
        buffered. An interrupted weight sync has therefore changed some layers; the engine refuses
        to generate until another sync is complete.

        Raises:
            EngineError: rollouts are being generated, the tensors do not fit, or vLLM failed.
        """
        engine = self._engine
        if engine.has_unfinished_requests():
            raise EngineError(
                "weights were sent while rollouts were being generated; finish those first"
            )
        self._wake(WEIGHTS)  # the cache sleeps on: its memory holds the tensors on their way
        self._whole = False
        try:
            engine.collective_rpc("start_weight_update")
            update = {"update_info": {"tensors": check_tensors(weights, self._expected)}}
            engine.collective_rpc("update_weights", kwargs=update)
            engine.collective_rpc("finish_weight_update")
            (digest,) = engine.collective_rpc("received_digest")
        except (RuntimeError, ValueError, KeyError, AssertionError) as error:
            raise EngineError(f"the update of vLLM's weights was interrupted: {error}") from error
        self._wake(CACHE)
        if not engine.reset_prefix_cache():
            raise EngineError("vLLM kept prefixes computed with the previous weights")
        self._whole = True
        return digest

    def sleep(self) -> None:
        """Discard the weights and the cache; without sleep mode, only refuse the old weights."""
        self._whole = False
        if self._sleeps and not self._asleep:
            self._engine.sleep(SLEEP_LEVEL)
            self._asleep = {WEIGHTS, CACHE}

    def close(self) -> None:
        """Free weights and cache.

        vLLM's own shutdown would also destroy every process group of this process: its own, which
        another engine may use, and the default one, which the trainer uses.
        """
        core = self._core()
        self._engine.renderer.shutdown()
        core.structured_output_manager.clear_backend()
        core.model_executor.shutdown()
        core.scheduler.shutdown()
        del self._engine, core
        # vLLM freezes the heap as it starts, and thaws it in the shutdown that is not called here.
        gc.unfreeze()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _wake(self, *parts: str) -> None:
        """Make these parts of the engine's memory resident, if they sleep."""
        for part in parts:
            if part in self._asleep:
                self._engine.wake_up([part])
                self._asleep.remove(part)


def _refuse_groups(size: int, tensor: int) -> None:
    """Refuse replicas that the processes of this launch cannot form.

    Raises:
        SettingsError: names the setting.
    """
    if size % tensor:
        raise SettingsError(
            f"layout.rollout_tensor is {tensor}, but {size} processes do not divide by it; "
            "with layout.dedicated_rollout_gpus 0 every GPU of a replica is a process of the launch"
        )
    if parallel_state.model_parallel_is_initialized():
        there = parallel_state.get_tensor_model_parallel_world_size()
        if there != tensor:
            raise SettingsError(
                f"a vLLM engine of this process uses layout.rollout_tensor {there}; "
                f"another with {tensor} needs a process of its own (layout.dedicated_rollout_gpus)"
            )
