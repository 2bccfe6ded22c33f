"""Whether a rollout engine computes with every factor of an adapter.

An engine may accept an adapter and ignore a part of it, such as the factors of its experts;
every digest is then right, and training is off-policy without an error. At the start the factors
B are 0, so no log-probability shows it either. Therefore all factors have random values for a
moment, and both engines score random sequences: they must agree on the tokens of every single
expert.

What rounding explains is measured on the same engines and sequences, without the probe. A median
over tokens is compared, because rounding can change a token's experts, and then by up to 10
nats. Measured on a random MoE of 2 layers with 8 experts, for each of its 56 projections: the
largest median of an expert is 1.9 times that without the probe if all factors are used (bf16),
and 7 times in bf16, 45 in fp16 if those of the least important projection are not.

Letters: N sequences, T tokens, M tokens of all sequences, L MoE layers, K experts per token,
E experts.
"""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tasks.engines.protocols import RolloutEngine, TokenBatch, Trainer
from tasks.errors import EngineError

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
