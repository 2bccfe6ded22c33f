# pyright: reportMissingImports=false
"""vLLM in this process: colocated with the trainer, or alone on a laptop.

Under torchrun vLLM joins the process group that is there; consecutive ranks form tensor-parallel
groups, each of them a replica. All ranks then open their engines together, and the ranks of a
replica make the same calls: they step in lockstep.

vLLM's groups are made once per process and stay: another engine takes them up, and the process
group, which others may use by then, is never destroyed.
"""

import gc
import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import torch
from vllm import EngineArgs, RequestOutput
from vllm.distributed import parallel_state
from vllm.v1.engine.core_client import InprocClient
from vllm.v1.engine.llm_engine import LLMEngine

from tasks.engines.rollout_vllm.backend import Call, update_steps
from tasks.errors import EngineError, SettingsError

SLEEP_LEVEL = 1
"""Weights go to the host's memory, the cache is dropped."""


class InProcess:
    """A Backend on vLLM's offline engine."""

    restarts = 0
    reissued = 0

    def __init__(self, options: dict[str, Any]) -> None:
        options = dict(options)
        size = int(os.environ.get("WORLD_SIZE", "1"))
        tensor = options["tensor_parallel_size"]
        _refuse_groups(size, tensor)
        if size > 1:
            options["distributed_executor_backend"] = "external_launcher"
        set_threads = torch.set_num_threads
        try:
            self._engine = LLMEngine.from_engine_args(EngineArgs(**options))
        finally:
            # On a CPU vLLM forbids everybody in the process to set the number of threads.
            torch.set_num_threads = set_threads
        self.leads = parallel_state.get_tp_group().rank_in_group == 0
        self._sleeping = False
        self._made = 0

    def run(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Step until every call has ended."""
        engine = self._awake()
        pending: dict[str, int] = {}
        try:
            for call in calls:
                self._made += 1
                name = str(self._made)
                engine.add_request(name, {"prompt_token_ids": call.tokens}, call.params)
                pending[name] = call.number
            while pending:
                for output in engine.step():
                    number = pending.pop(output.request_id, None)
                    if number is not None and isinstance(output, RequestOutput):
                        yield number, output
        finally:
            if pending:
                engine.abort_request(list(pending))

    def agreed(self, folder: Path | None) -> Path:
        """Send the leader's folder through the replica's process group."""
        agreed = parallel_state.get_tp_group().broadcast_object(folder, src=0)
        assert agreed is not None
        return agreed

    def install(self, folder: Path) -> str:
        """Update, then forget the prefixes that the old weights computed."""
        engine = self._awake()
        if engine.has_unfinished_requests():
            raise EngineError("weights came while rollouts were being generated; end those first")
        try:
            for name, arguments in update_steps(folder):
                engine.collective_rpc(name, kwargs=arguments)
            digests = engine.collective_rpc("received_digest")
        except (RuntimeError, ValueError, KeyError, AssertionError) as error:
            raise EngineError(f"vLLM failed in a weight update: {error}") from error
        if not engine.reset_prefix_cache():
            raise EngineError("vLLM kept prefixes computed with the weights of before")
        return digests[0]

    def rest(self) -> None:
        """Sleep; without a GPU there is no memory that others could not take."""
        if torch.cuda.is_available() and not self._sleeping:
            self._engine.sleep(SLEEP_LEVEL)
            self._sleeping = True

    def close(self) -> None:
        """Free weights and cache.

        vLLM's own shutdown does as much, and then destroys every process group of this process:
        its own, that another engine may use, and the default one, which the trainer uses.
        """
        client = self._engine.engine_core
        assert isinstance(client, InprocClient)
        core = client.engine_core
        self._engine.renderer.shutdown()
        core.structured_output_manager.clear_backend()
        core.model_executor.shutdown()
        core.scheduler.shutdown()
        del self._engine, client, core
        gc.unfreeze()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _awake(self) -> LLMEngine:
        if self._sleeping:
            self._engine.wake_up()
            self._sleeping = False
        return self._engine


def _refuse_groups(size: int, tensor: int) -> None:
    """Refuse replicas that the processes of this launch cannot form.

    Raises:
        SettingsError: names the setting.
    """
    if size % tensor:
        raise SettingsError(
            f"layout.rollout_tensor is {tensor}, but {size} processes do not divide by it; "
            "with layout.rollout_apart 0 every GPU of a replica is a process of the launch"
        )
    if parallel_state.model_parallel_is_initialized():
        there = parallel_state.get_tensor_model_parallel_world_size()
        if there != tensor:
            raise SettingsError(
                f"a vLLM engine of this process uses layout.rollout_tensor {there}; "
                f"another with {tensor} needs a process of its own (layout.rollout_apart)"
            )
