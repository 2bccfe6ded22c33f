"""A rollout engine that receives an adapter and computes with the merged weights.

A weight sync sends the factors only. They are merged here into the weights of the model
directory, and the engine installs the result like any other weights: it needs no kernels for
adapters, so none of them can ignore the factors of an expert.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rollouts import Rollout
from tasks.algorithms.digests import weight_digest
from tasks.engines.lora.factors import factor_names, is_adapted, merged
from tasks.engines.protocols import EngineCounters, Sampling
from tasks.engines.request_queue import QueueingEngine, Requests
from tasks.engines.weight_sync import Outgoing
from tasks.errors import EngineError
from tasks.models.weights import Weights

HEAD = "lm_head.weight"


class AdapterRollout:
    """A RolloutEngine whose weight syncs contain the factors of LoRA.

    Args:
        engine: opened on the model directory.
        folder: the model directory: the weights that the factors are added to.
        rank: of the factors.
    """

    def __init__(self, engine: QueueingEngine, folder: Path, rank: int) -> None:
        self._engine, self._folder, self._rank = engine, folder, rank
        config = json.loads((folder / "config.json").read_bytes())
        # Some directories contain the head again, although it is the embedding.
        self._left_out = {HEAD} if config.get("tie_word_embeddings") else set()
        with Weights(folder) as weights:
            self._left_out |= weights.mtp

    @property
    def policy_version(self) -> int:
        """Version of the installed weights."""
        return self._engine.policy_version

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer."""
        return self._engine.num_experts

    def slots(self, tokens: float) -> int:
        """Number of sequences decoded concurrently."""
        return self._engine.slots(tokens)

    @property
    def counters(self) -> EngineCounters:
        """Work done so far."""
        return self._engine.counters

    def generate(self, requests: Requests, sampling: Sampling) -> Iterator[Rollout]:
        """Generate with the merged weights."""
        return self._engine.generate(requests, sampling)

    def score_logprobs(self, tokens: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        """Score with the merged weights."""
        return self._engine.score_logprobs(tokens)

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Merge the received factors and install the result; return the digest of the factors.

        Raises:
            EngineError: a factor is missing, unknown or of the wrong shape, or the engine received
                other weights than the merged ones.
        """
        factors = dict(weights)
        with Weights(self._folder) as base:
            names = [name for name in base.file_of if name not in self._left_out]
            self._check(factors, {name: base.shape(name) for name in names if is_adapted(name)})
            outgoing = Outgoing(merged(((name, base.read(name)) for name in names), factors))
            installed, expected = self._engine.load_weights(outgoing, version), outgoing.digest()
        if installed != expected:
            raise EngineError(
                f"weight sync of version {version}: the engine has {installed[:12]}, the merged "
                f"weights are {expected[:12]}; no rollout was made with the wrong weights"
            )
        return weight_digest(factors.items())

    def sleep(self) -> None:
        """Release GPU memory until the next weight sync."""
        self._engine.sleep()

    def close(self) -> None:
        """Free all resources."""
        self._engine.close()

    def _check(self, factors: dict[str, torch.Tensor], adapted: dict[str, tuple[int, ...]]) -> None:
        """Refuse an adapter that is not complete: an absent factor would be an unchanged weight."""
        expected: dict[str, tuple[int, ...]] = {}
        for name, (outputs, inputs) in adapted.items():
            a_name, b_name = factor_names(name)
            expected[a_name], expected[b_name] = (self._rank, inputs), (outputs, self._rank)
        wrong = sorted(expected.keys() ^ factors.keys()) or [
            name for name, shape in expected.items() if tuple(factors[name].shape) != shape
        ]
        if wrong:
            raise EngineError(
                f"weight sync: the adapter does not fit {self._folder}: {len(wrong)} factors are "
                f"missing, unknown or of another shape, among them {wrong[:3]}"
            )
