"""One rank in bf16: `make gpu` runs it on a GPU, other machines on Megatron's own layers.

On a GPU the layers are Transformer Engine's, sequences are packed, and experts grouped. Everything
is compared with the embedded trainer, which computes in fp32.
"""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from data_schemas.machine_settings import LayoutSettings, Precision
from data_schemas.rollouts import ScoredRollout
from data_schemas.verdicts import scored
from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling, TokenBatch, TokenScores
from tasks.rl.batch import token_batch
from tests.engines.losses_of_contract import likelihood
from tests.engines.trainer_megatron.world_of_trainers import RemoteTrainer, trainer_world

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytestmark = pytest.mark.engines

LAYOUT = LayoutSettings(precision=Precision.BF16)
ROUNDING = 0.02
"""Mean |dlogp| of bf16 against fp32, nats: 0.005 on Megatron's own layers."""


@pytest.fixture(scope="module")
def rollouts(tiny_moe):
    requests = [Request(str(n), np.arange(n, n + 4 + n, dtype=np.int32), 3) for n in range(4)]
    return list(HFRolloutEngine(tiny_moe).generate(requests, Sampling(16, 1.0, seed=0)))


@pytest.fixture(scope="module")
def batch(rollouts) -> TokenBatch:
    items = [ScoredRollout(one, "", scored(1.0, "correct"), 0.0) for one in rollouts]
    return token_batch(items, use_routes=True)


@pytest.fixture(scope="module")
def opened() -> Iterator:
    with trainer_world(1) as ranks:
        yield lambda folder, layout=LAYOUT: RemoteTrainer(ranks, folder, layout)


def gap(one: TokenScores, other: TokenScores, batch: TokenBatch) -> float:
    difference_NT = (one.logprobs_NT - other.logprobs_NT).abs()
    return float(difference_NT[batch.response_NT].mean())


def test_packed_scores_are_those_of_the_embedded_trainer_but_for_rounding(opened, tiny_moe, batch):
    ours = opened(tiny_moe).score(batch, temperature=1.0, record_routes=False)
    exact = TorchTrainer(tiny_moe).score(batch, temperature=1.0, record_routes=False)

    assert gap(ours, exact, batch) < ROUNDING


def test_other_routes_are_replayed_too(opened, tiny_moe, batch):
    recorded_NTLK = batch.padded_routes_NTLK
    moved_NTLK = torch.where(recorded_NTLK >= 0, (recorded_NTLK + 3) % 8, -1)
    moved = TokenBatch(
        batch.tokens_NT, batch.lengths_N, batch.response_NT, moved_NTLK, batch.columns
    )
    trainer = opened(tiny_moe)
    ours = trainer.score(moved, temperature=1.0, record_routes=False)
    exact = TorchTrainer(tiny_moe).score(moved, temperature=1.0, record_routes=False)

    assert gap(ours, exact, batch) < ROUNDING
    own = trainer.score(batch, temperature=1.0, record_routes=False)
    assert gap(ours, own, batch) > gap(ours, exact, batch)


def test_packing_changes_no_score(opened, tiny_moe, batch):
    whole = opened(tiny_moe).score(batch, temperature=1.0, record_routes=False)
    small = LAYOUT.model_copy(update={"micro_batch_tokens": 64})
    parts = opened(tiny_moe, small).score(batch, temperature=1.0, record_routes=False)

    assert gap(whole, parts, batch) < ROUNDING


def test_an_update_raises_the_likelihood_and_its_weights_reach_the_engine(opened, tiny_moe, batch):
    trainer, engine = opened(tiny_moe), HFRolloutEngine(tiny_moe)
    before = trainer.score(batch, temperature=1.0, record_routes=False)
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)
    after = trainer.score(batch, temperature=1.0, record_routes=False)
    digest = engine.load_weights(trainer.weights(), version=1)

    assert float((after.logprobs_NT - before.logprobs_NT)[batch.response_NT].mean()) > ROUNDING
    assert weight_digest(trainer.weights()) == digest


def test_a_state_goes_on_as_if_it_had_not_stopped(opened, tiny_moe, batch, tmp_path):
    trainer = opened(tiny_moe)
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)
    trainer.save(tmp_path / "state")
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)
    expected = weight_digest(trainer.weights())

    again = opened(tiny_moe)
    again.restore(tmp_path / "state")
    again.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)

    assert expected == weight_digest(again.weights())
