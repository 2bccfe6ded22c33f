"""What engines on vLLM's second model runner record: `python second_runner.py MODEL OTHER OUT`.

The other model has the same shape: its weights are sent to an engine that was opened on the first.

With TRITON_INTERPRET=1 the runner, which needs Triton and so a GPU, runs on a CPU: Triton's
interpreter computes every program of its kernels with NumPy. vLLM's CPU build hides Triton from
itself, and the interpreter lacks `to` of a loop's number and `log1p` of CUDA's library: they are
added here. A process that vLLM starts imports this file as its main module, and has them too.
"""

import importlib
import os
import pickle
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.engines.rollout_vllm.environment import prepare_environment

prepare_environment()

import vllm.triton_utils  # noqa: E402


def interpret() -> None:
    """Let vLLM's CPU build find Triton's interpreter."""
    import triton.language as tl
    from triton.runtime import interpreter

    vllm.triton_utils.importing.HAS_TRITON = True
    importlib.reload(vllm.triton_utils)
    from vllm.v1.worker.gpu.sample import gumbel

    class Number(int):
        def to(self, _: object) -> "Number":
            return self

    patch = interpreter._patch_lang_core

    def with_numbers(lang: Any, scope: Any) -> None:
        patch(lang, scope)
        plain = lang.range
        scope.set_attr(lang, "range", lambda *ends, **more: map(Number, plain(*ends, **more)))

    def log1p(given: Any) -> Any:
        computed = interpreter.interpreter_builder.unary_op(given.handle, np.log1p)
        return tl.core.tensor(computed, given.type)

    vars(interpreter).update(_patch_lang_core=with_numbers)
    vars(gumbel).update(tldevice=SimpleNamespace(log1p=log1p))


if os.environ.get("TRITON_INTERPRET") == "1" and not vllm.triton_utils.HAS_TRITON:
    interpret()

from data_schemas.machine_settings import LayoutSettings, Precision  # noqa: E402
from data_schemas.rollouts import Rollout  # noqa: E402
from tasks.engines.embedded.trainer import TorchTrainer  # noqa: E402
from tasks.engines.protocols import Request, Sampling  # noqa: E402
from tasks.engines.rollout_vllm.engine import VllmRolloutEngine  # noqa: E402
from tasks.engines.rollout_vllm.in_process import InProcessBackend  # noqa: E402

SAMPLING = Sampling(9, 0.3, seed=1, top_p=0.9, top_k=60, record_kept=True)
PART = 4
"""Tokens of a segment."""
SIBLINGS = 60
WHOLE = 1 << 20
"""A top-k that keeps everything."""
CANARIES = [np.arange(2, 34, dtype=np.int32), np.arange(40, 60, dtype=np.int32)]
REPLICAS = 1 if torch.cuda.is_available() else 2
SHARED = 0.4
"""Share of a GPU's memory, beside the trainer's."""


@dataclass(frozen=True)
class Recorded:
    """What the engines gave, in the order in which they were open."""

    runners: tuple[str, ...]
    """Modules of the model runners of the engines in this process."""
    mismatched: dict[str, list[Rollout]]
    """In bf16: drawn from all tokens, and from recorded sets."""
    rollouts: list[Rollout]
    siblings: list[Rollout]
    """Responses of one prompt, a token each."""
    scores: list[NDArray[np.float32]]
    digest: str
    """Digest of the other weights, as received; what follows is with them."""
    scores_after: list[NDArray[np.float32]]
    parts: list[Rollout]
    continued: list[Rollout]
    """Those of the first prompt, to their ends, and those of the second until then."""
    elsewhere: list[Rollout]
    """Rollouts of engines in processes of their own, on the first weights."""
    restarts: int


def prompts() -> list[Request]:
    """Three samples of two prompts."""
    draws = np.random.default_rng(0)
    lengths = (6, 9)
    return [
        Request(f"p{place}", draws.integers(0, 250, length).astype(np.int32), 3)
        for place, length in enumerate(lengths)
    ]


def rest_of(parts: list[Rollout]) -> list[Request]:
    """Ask for the rest of those parts that are of the first prompt, and for the second anew."""
    first, second = prompts()
    begun = [
        replace(first, num_samples=1, first_sample=one.sample, response_tokens=one.response_tokens)
        for one in parts
        if one.problem_id == first.problem_id
    ]
    return [*begun, second]


def runner_of(engine: VllmRolloutEngine) -> str:
    """Name the module of the model runner of an engine in this process."""
    assert isinstance(engine._backend, InProcessBackend)
    executor: Any = engine._backend._core().model_executor
    return type(executor.driver_worker.worker.model_runner).__module__


def record(folder: Path, other: Path) -> Recorded:
    """Open engines one after the other."""
    runners = []

    def opened(**options: Any) -> VllmRolloutEngine:
        layout = LayoutSettings(rollout_memory=SHARED)
        engine = VllmRolloutEngine(folder, layout=layout, **options)
        runners.append(runner_of(engine))
        return engine

    with closing(opened(precision=Precision.BF16, sleeps=False, record_kept=True)) as engine:
        many = [Request(str(n), np.arange(n, n + 6, dtype=np.int32), 4) for n in range(4)]
        whole = replace(SAMPLING, top_p=1.0, top_k=WHOLE, record_kept=False)
        mismatched = {
            "whole": list(engine.generate(many, whole)),
            "sets": list(engine.generate(many, replace(SAMPLING, top_p=0.8))),
        }
    opened(sleeps=False).close()
    with closing(opened(record_kept=True)) as engine:
        rollouts = list(engine.generate(prompts(), SAMPLING))
        many = [replace(prompts()[0], num_samples=SIBLINGS)]
        siblings = list(engine.generate(many, replace(SAMPLING, max_new_tokens=1)))
        scores = engine.score_logprobs(CANARIES)
        engine.sleep()
        digest = engine.load_weights(TorchTrainer(other).weights(), version=1)
        scores_after = engine.score_logprobs(CANARIES)
        parts = list(engine.generate(prompts(), replace(SAMPLING, segment_tokens=PART)))
        continued = list(engine.generate(rest_of(parts), replace(SAMPLING, enough=1)))
    layout = LayoutSettings(dedicated_rollout_gpus=REPLICAS, rollout_memory=SHARED)
    with closing(VllmRolloutEngine(folder, layout=layout, record_kept=True)) as engine:
        elsewhere = list(engine.generate(prompts(), SAMPLING))
        restarts = engine.restarts
    return Recorded(
        tuple(runners),
        mismatched,
        rollouts,
        siblings,
        scores,
        digest,
        scores_after,
        parts,
        continued,
        elsewhere,
        restarts,
    )


if __name__ == "__main__":
    model, another, out = map(Path, sys.argv[1:])
    # Under the name that the tests import, not under that of this process's main module.
    from tests.engines.rollout_vllm import second_runner

    out.write_bytes(pickle.dumps(second_runner.record(model, another)))
