"""LoRA between engines: factors and their merge, files of PEFT, merged rollouts, a canary."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from data_schemas.rollouts import Rollout
from tasks.algorithms.digests import weight_digest
from tasks.engines.protocols import EngineCounters, RolloutEngine, Sampling, TokenBatch, Trainer
from tasks.engines.request_queue import QueueingEngine, Requests
from tasks.engines.weight_sync import Outgoing
from tasks.errors import EngineError
from tasks.models.weights import Weights

# Factors of LoRA under the names of Hugging Face files, and their merge into the weights.
#
# Source: LoRA (arXiv 2106.09685): W' = W + (alpha / r) B A with B = 0 at the start. Every
# projection is adapted, those of each expert as well; routers, norms, embeddings and head are
# frozen. The factors of `X.weight` [O, I] are `X.lora_A.weight` [r, I] and `X.lora_B.weight` [O,
# r], as in PEFT.
#
# Letters: O outputs, I inputs, r rank.

ALPHA = 32
"""With a constant alpha and a scale of alpha / r, the best learning rate hardly depends on the rank
(Schulman et al., LoRA Without Regret, 2025, whose alpha this is)."""
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Names of the adapted modules."""


def is_adapted(name: str) -> bool:
    """Return whether a tensor of a model has factors: 'model.layers.0.self_attn.q_proj.weight'."""
    module, _, last = name.rpartition(".")
    return last == "weight" and module.rpartition(".")[2] in PROJECTIONS


def describe(rank: int) -> dict[str, str]:
    """Say in a statement what was trained; nothing if all weights were."""
    if not rank:
        return {}
    return {"lora": f"rank {rank}, alpha {ALPHA}, of {', '.join(PROJECTIONS)} and every expert's"}


def factor_names(name: str) -> tuple[str, str]:
    """Name the factors A and B of an adapted tensor."""
    module = name.removesuffix(".weight")
    return f"{module}.lora_A.weight", f"{module}.lora_B.weight"


def merge(weight_OI: torch.Tensor, a_rI: torch.Tensor, b_Or: torch.Tensor) -> torch.Tensor:
    """Return W + (alpha / r) B A in float32. Both engines merge with it, so their bits agree."""
    scale = ALPHA / a_rI.shape[0]
    return weight_OI.to(a_rI).float() + scale * (b_Or.float() @ a_rI.float())


def merged(
    tensors: Iterable[tuple[str, torch.Tensor]], factors: Mapping[str, torch.Tensor]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a model, with the factors merged into those that have any."""
    for name, tensor in tensors:
        if is_adapted(name):
            a_name, b_name = factor_names(name)
            yield name, merge(tensor, factors[a_name], factors[b_name])
        else:
            yield name, tensor


# An adapter as files of PEFT, which transformers, vLLM and others read beside the base model.

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."


def write_adapter(folder: Path, factors: Iterable[tuple[str, torch.Tensor]], rank: int) -> None:
    """Write the factors of every matrix; an expert's are under the expert's own name.

    Args:
        folder: made if it does not exist.
        factors: as a trainer's weight sync sends them.
        rank: of the factors.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {PREFIX + name: factor.cpu().contiguous() for name, factor in factors}
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    used = {name.split(".")[-3] for name in tensors}
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None,  # the statement of the stage names it by digest
        "r": rank,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": [name for name in PROJECTIONS if name in used],
        "inference_mode": True,
    }
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n")


# Whether a rollout engine computes with every factor of an adapter.
#
# An engine may accept an adapter and ignore a part of it, such as the factors of its experts;
# every digest is then right, and training is off-policy without an error. At the start the factors
# B are 0, so no log-probability shows it either. Therefore all factors have random values for a
# moment, and both engines score random sequences: they must agree on the tokens of every single
# expert.
#
# What rounding explains is measured on the same engines and sequences, without the probe. A median
# over tokens is compared, because rounding can change a token's experts, and then by up to 10
# nats. Measured on a random MoE of 2 layers with 8 experts, for each of its 56 projections: the
# largest median of an expert is 1.9 times that without the probe if all factors are used (bf16),
# and 7 times in bf16, 45 in fp16 if those of the least important projection are not.
#
# Letters: N sequences, T tokens, M tokens of all sequences, L MoE layers, K experts per token,
# E experts.

SEQUENCES, TOKENS = 16, 64
LEAST_TOKENS = 8
"""An expert with fewer tokens is not judged."""
FACTOR = 3.5
"""Largest median under the probe, in medians without it."""
FLOOR = 1e-5
"""Nats that rounding explains whatever was measured: in float32 the median may be 0."""
logger = logging.getLogger(__name__)


@runtime_checkable
class AdapterTrainer(Trainer, Protocol):
    """A Trainer of adapters."""

    def probing(self) -> AbstractContextManager[None]:
        """Give all factors random values, while the block runs."""
        ...


def check_adapter(engine: RolloutEngine, trainer: Trainer, vocabulary: int, version: int) -> int:
    """Compare both engines under a probe adapter; return how many experts were not judged.

    Afterwards the trainer is as before; the engine has the probe until the next weight sync.

    Args:
        engine: of rollouts, opened with adapters.
        trainer: of adapters.
        vocabulary: number of token ids to draw from.
        version: of the policy.

    Raises:
        EngineError: they differ by more than rounding explains, over all tokens or over those of
            an expert.
    """
    assert isinstance(trainer, AdapterTrainer)
    tokens_NT = np.random.default_rng(0).integers(0, vocabulary, (SEQUENCES, TOKENS))
    sequences = list(tokens_NT.astype(np.int32))
    rounding_M, _ = _gaps(engine, trainer, sequences, version)
    bound = max(FLOOR, FACTOR * float(np.median(rounding_M)))
    with trainer.probing():
        gaps_M, experts_MLK = _gaps(engine, trainer, sequences, version)
    shares = [
        (f"expert {expert} of MoE layer {layer}", (experts_MLK[:, layer] == expert).any(axis=1))
        for layer in range(experts_MLK.shape[1])
        for expert in range(engine.num_experts)
    ]
    judged = [(name, own_M) for name, own_M in shares if own_M.sum() >= LEAST_TOKENS]
    medians = {name: float(np.median(gaps_M[own_M])) for name, own_M in judged}
    medians["all experts"] = float(np.median(gaps_M))
    worst = max(medians, key=lambda name: np.nan_to_num(medians[name], nan=np.inf))
    if not medians[worst] <= bound:
        raise EngineError(
            "adapter: with a probe in all factors the rollout engine's log-probabilities are "
            f"{medians[worst]:.3g} nats (median) from the trainer's on the tokens of {worst}; "
            f"rounding explains {bound:.3g}. The engine accepts the adapter and ignores a part of "
            "it; no rollout was made with it."
        )
    rest = len(shares) - len(judged)
    if rest:
        logger.warning(
            "adapter: %d of %d experts were not compared: fewer than %d of the probe's tokens "
            "are theirs",
            *(rest, len(shares), LEAST_TOKENS),
        )
    return rest


def _gaps(
    engine: RolloutEngine, trainer: Trainer, sequences: Sequence[NDArray[np.int32]], version: int
) -> tuple[NDArray[np.float32], NDArray[np.int16]]:
    """|dlogp| of every token after the first, and the experts of the token it was predicted from.

    Without a router the routes have no layer.
    """
    engine.load_weights(trainer.weights(), version)
    batch = TokenBatch.of_sequences(sequences)
    ours = trainer.score(batch, temperature=1.0, record_routes=engine.num_experts > 0)
    gaps_NT = np.abs(np.stack(engine.score_logprobs(sequences)) - ours.logprobs_NT[:, 1:].numpy())
    if ours.experts_NTLK is None:
        return gaps_NT.flatten(), np.empty((gaps_NT.size, 0, 0), dtype=np.int16)
    return gaps_NT.flatten(), ours.experts_NTLK[:, :-1].flatten(0, 1).numpy()


# A rollout engine that receives an adapter and computes with the merged weights.
#
# A weight sync sends the factors only. They are merged here into the weights of the model
# directory, and the engine installs the result like any other weights: it needs no kernels for
# adapters, so none of them can ignore the factors of an expert.

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
