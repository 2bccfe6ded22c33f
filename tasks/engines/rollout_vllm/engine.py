"""Rollouts with vLLM: in this process, or in a monitored process that is restarted on failure."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.machine_settings import LayoutSettings, Precision
from data_schemas.rollouts import Rollout
from tasks.engines.chat import end_and_pad, load_tokenizer
from tasks.engines.embedded.slots import Seat
from tasks.engines.protocols import EngineCounters, Sampling
from tasks.engines.request_queue import CallRequests, Requests
from tasks.engines.rollout_vllm.environment import (
    group_with,
    last_devices,
    prepare_environment,
)

# Before the modules below import vLLM, which reads the environment while it is imported.
prepare_environment()

from tasks.engines.rollout_vllm.backend import Backend, Call  # noqa: E402
from tasks.engines.rollout_vllm.completions import (  # noqa: E402
    call_of,
    logprobs_call,
    logprobs_of,
    make_seats,
    refuse_sets,
    rollout_of,
)
from tasks.engines.rollout_vllm.counters import WorkCounters  # noqa: E402
from tasks.engines.rollout_vllm.in_process import InProcessBackend  # noqa: E402
from tasks.engines.rollout_vllm.options import (  # noqa: E402
    SLOTS,
    engine_options,
    model_facts,
    refuse,
)
from tasks.engines.rollout_vllm.own_process import OwnProcess  # noqa: E402
from tasks.engines.rollout_vllm.replicas import Replicas  # noqa: E402
from tasks.engines.rollout_vllm.staging import Staging  # noqa: E402

ONE_PROCESS = LayoutSettings()


class VllmRolloutEngine:
    """A RolloutEngine on vLLM.

    With `layout.dedicated_rollout_gpus` 0 it runs in this process; above 0 in separate processes,
    each with `layout.rollout_tensor` of the node's last GPUs.
    """

    def __init__(
        self,
        folder: Path,
        *,
        precision: Precision = Precision.FP32,
        layout: LayoutSettings = ONE_PROCESS,
        fp32_router: bool = False,
        fp8_ignored_layers: Sequence[str] = (),
        group: str | None = None,
        sleeps: bool = True,
        record_kept: bool = False,
    ) -> None:
        """Open a model directory; in process and under torchrun, on all ranks together.

        Args:
            group: weight sync to separate processes: over 'nccl' or 'gloo', or '' in files. None
                selects NCCL between GPUs, else files.
            fp32_router: routers keep fp32 weights and logits in a lower precision.
            fp8_ignored_layers: layers kept in bf16 under fp8, in addition to routers, embeddings
                and head, such as those of Super Experts: 'model.layers.3.mlp.experts'.
            sleeps: a trainer in this process uses the same GPUs; of such engines a process has one.
            record_kept: calls may ask for the sets that tokens are drawn from; every call then
                has a temperature and a top-k, which bounds the sets.

        Raises:
            SettingsError: not a model directory, or not supported on this machine.
        """
        self._facts = model_facts(folder)
        refuse(self._facts, precision, layout, record_kept=record_kept)
        self._end_tokens, _ = end_and_pad(load_tokenizer(folder))
        options = engine_options(
            folder,
            self._facts,
            precision=precision,
            layout=layout,
            fp32_router=fp32_router,
            fp8_ignored_layers=fp8_ignored_layers,
            sleeps=sleeps,
            record_kept=record_kept,
        )
        self._records_kept = record_kept
        self._replicas = max(1, layout.dedicated_rollout_gpus // layout.rollout_tensor)
        self._staging = Staging(folder)
        self._backend = _open_backend(options, layout, self._staging, group)
        self._version = 0
        self._tally = WorkCounters()

    @property
    def policy_version(self) -> int:
        """Version of the installed weights."""
        return self._version

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer; 0 for a dense model."""
        return self._facts.num_experts

    def slots(self, tokens: float) -> int:
        """Number of sequences decoded concurrently, as many as the KV cache holds."""
        count = int(self._backend.cache_tokens / max(1.0, tokens))
        return min(SLOTS, max(1, count)) * self._replicas

    @property
    def counters(self) -> EngineCounters:
        """Work done so far."""
        return self._tally.counters

    @property
    def restarts(self) -> int:
        """Number of restarts of an engine that died or hung."""
        return self._backend.restarts

    @property
    def reissued(self) -> int:
        """Number of sequences that were in flight at a restart and were generated again."""
        return self._backend.reissued

    def generate(self, requests: Requests, sampling: Sampling) -> Iterator[Rollout]:
        """Yield each rollout as it ends; vLLM admits requests in the order given.

        Args:
            requests: all of them, or in this process a queue.
            sampling: of all.

        Raises:
            DataError: a request has no prompt, or no token left to draw.
            SettingsError: vLLM does not support the temperature, the sets or the length.
            EngineError: vLLM failed, also after a restart.
        """
        refuse_sets(sampling, records=self._records_kept)
        cache = self._backend.cache_tokens
        intake = CallRequests(requests, sampling, slots=SLOTS, cache=cache)
        seats: list[Seat] = []
        calls: list[Call] = []
        num_taken = 0

        def more() -> Sequence[Call] | None:
            nonlocal num_taken
            if not intake.open:
                return None
            first, new = len(calls), intake.take()
            positions, capacity = self._facts.max_tokens, self._backend.max_tokens
            seats.extend(make_seats(new, sampling, positions, capacity, first=num_taken))
            num_taken += len(new)
            for number, seat in enumerate(seats[first:], start=first):
                calls.append(call_of(number, seat, sampling, self._end_tokens))
            return calls[first:]

        if isinstance(requests, Sequence) and not sampling.enough:
            running = self._backend.run(more() or ())
        else:
            assert isinstance(self._backend, InProcessBackend), (
                "a process of its own has other steps"
            )
            over = (lambda: intake.over) if sampling.enough else None
            running = self._backend.run((), more, over)
        started_seats: set[int] = set()
        with closing(running) as answers:
            for number, output in self._tally.timed(answers):
                seat = seats[number]
                intake.end(seat.request.problem_id, seat.sample)
                rollout = rollout_of(seat, output, sampling, self._facts, self._version)
                is_begun = seat.number in started_seats
                started_seats.add(seat.number)
                self._tally.rollout(rollout, 0 if is_begun else len(calls[number].tokens))
                yield rollout

    def score_logprobs(self, tokens: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        """Log-probabilities of tokens 1..T-1 of every sequence, in the order given."""
        scores = [np.empty(0, dtype=np.float32)] * len(tokens)
        calls = [logprobs_call(number, one) for number, one in enumerate(tokens) if len(one) > 1]
        for number, output in self._backend.run(calls):
            scores[number] = logprobs_of(output, tokens[number])
        return scores

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Send the tensors to the workers; return the digest of what they received.

        Under torchrun every rank of a replica gets all tensors.

        Raises:
            EngineError: a tensor does not fit, rollouts are being generated, or the update
                failed. In a separate process the engine is unchanged; in this process it refuses
                to generate until a weight sync is complete.
        """
        digest = self._backend.install(weights)
        self._version = version
        return digest

    def sleep(self) -> None:
        """Release GPU memory for the trainer until the next call."""
        self._backend.sleep()

    def close(self) -> None:
        """Free everything."""
        self._backend.close()
        self._staging.close()


def _open_backend(
    options: dict[str, Any], layout: LayoutSettings, staging: Staging, group: str | None
) -> Backend:
    if not layout.dedicated_rollout_gpus:
        return InProcessBackend(options, staging.expected)
    devices, size = last_devices(layout.dedicated_rollout_gpus), layout.rollout_tensor
    members = [
        OwnProcess(
            options,
            staging,
            devices=devices[first : first + size],
            hang_s=layout.hang_s,
            group=group_with(devices) if group is None else group,
        )
        for first in range(0, layout.dedicated_rollout_gpus, size)
    ]
    return members[0] if len(members) == 1 else Replicas(members, staging)
