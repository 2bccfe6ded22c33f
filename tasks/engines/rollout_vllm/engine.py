"""Rollouts with vLLM: in this process, or in one of its own that is watched and started again."""

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
from tasks.engines.protocols import EngineCounters, Request, Sampling
from tasks.engines.rollout_vllm.environment import (
    group_with,
    last_devices,
    prepare_environment,
)

# Before the modules below import vLLM, which reads the environment while it is imported.
prepare_environment()

from tasks.engines.rollout_vllm.backend import Backend  # noqa: E402
from tasks.engines.rollout_vllm.completions import (  # noqa: E402
    call_of,
    logprobs_call,
    logprobs_of,
    rollout_of,
    seats,
)
from tasks.engines.rollout_vllm.counters import WorkCounters  # noqa: E402
from tasks.engines.rollout_vllm.in_process import InProcess  # noqa: E402
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

    `layout.dedicated_rollout_gpus` 0 is this process; above 0 are separate processes, each with
    `layout.rollout_tensor` of the node's last GPUs.
    """

    def __init__(
        self,
        folder: Path,
        *,
        precision: Precision = Precision.FP32,
        layout: LayoutSettings = ONE_PROCESS,
        version: int = 0,
        fp8_ignored_layers: Sequence[str] = (),
        group: str | None = None,
    ) -> None:
        """Open a model directory; in process and under torchrun, on all ranks together.

        Args:
            group: how weights reach processes of their own: over a group of 'nccl' or 'gloo', or
                '' in files. None takes NCCL from GPU to GPU, else files.
            fp8_ignored_layers: names of layers that fp8 leaves alone beside routers, embeddings and
                head, such as those of Super Experts: 'model.layers.3.mlp.experts'.

        Raises:
            SettingsError: no model directory, or something that this machine cannot do.
        """
        self._facts = model_facts(folder)
        refuse(self._facts, precision, layout)
        self._end_token, _ = end_and_pad(load_tokenizer(folder))
        options = engine_options(
            folder,
            self._facts,
            precision=precision,
            layout=layout,
            fp8_ignored_layers=fp8_ignored_layers,
        )
        self._replicas = max(1, layout.dedicated_rollout_gpus // layout.rollout_tensor)
        self._staging = Staging(folder)
        self._backend = _opened(options, layout, self._staging, group)
        self._version = version
        self._tally = WorkCounters()

    @property
    def policy_version(self) -> int:
        """Version of the installed weights."""
        return self._version

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer; 0 for a dense model."""
        return self._facts.num_experts

    @property
    def slots(self) -> int:
        """How many sequences decode at once."""
        return SLOTS * self._replicas

    @property
    def counters(self) -> EngineCounters:
        """Work done so far."""
        return self._tally.counters

    @property
    def restarts(self) -> int:
        """How often an engine that died or hung was started again on the current weights."""
        return self._backend.restarts

    @property
    def reissued(self) -> int:
        """Sequences that were in flight then, and were generated anew."""
        return self._backend.reissued

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        """Yield each rollout as it ends; vLLM admits requests in the order given.

        Raises:
            DataError: a request has no prompt, or no token left to draw.
            SettingsError: a temperature or length that vLLM cannot do.
            EngineError: vLLM failed, and starting it again did not help.
        """
        waiting = seats(requests, sampling, self._facts.max_tokens)
        calls = [
            call_of(number, seat, sampling, self._end_token) for number, seat in enumerate(waiting)
        ]
        begun: set[int] = set()
        with closing(self._backend.run(calls)) as answers:
            for number, output in self._tally.timed(answers):
                seat = waiting[number]
                rollout = rollout_of(seat, output, sampling, self._facts, self._version)
                known = seat.number in begun
                begun.add(seat.number)
                self._tally.rollout(rollout, 0 if known else len(calls[number].tokens))
                yield rollout

    def score_logprobs(self, tokens: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        """Log-probabilities of tokens 1..T-1 of every sequence, in the order given."""
        found = [np.empty(0, dtype=np.float32)] * len(tokens)
        calls = [logprobs_call(number, one) for number, one in enumerate(tokens) if len(one) > 1]
        for number, output in self._backend.run(calls):
            found[number] = logprobs_of(output, tokens[number])
        return found

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Pass the tensors on to the workers; the digest is of what those received.

        Under torchrun every rank of a replica gets all tensors.

        Raises:
            EngineError: a tensor does not fit, rollouts are being generated, or the update
                failed. In a process of its own the engine is as before; in this process it
                refuses to compute until a whole weight sync has come.
        """
        digest = self._backend.install(weights)
        self._version = version
        return digest

    def sleep(self) -> None:
        """Give the GPU's memory to the trainer until the next call."""
        self._backend.sleep()

    def close(self) -> None:
        """Free everything."""
        self._backend.close()
        self._staging.close()


def _opened(
    options: dict[str, Any], layout: LayoutSettings, staging: Staging, group: str | None
) -> Backend:
    if not layout.dedicated_rollout_gpus:
        return InProcess(options, staging.expected)
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
