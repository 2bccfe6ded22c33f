"""What every trainer promises, checked on those installed here."""

import numpy as np
import pytest
import torch

from data_schemas.rollouts import ScoredRollout
from data_schemas.verdicts import scored
from tasks.engines.protocols import Request, Sampling, TokenBatch
from tasks.engines.rollout_hf import HFRolloutEngine
from tasks.engines.trainer_torch import TorchTrainer
from tasks.errors import DataError, EngineError
from tasks.rl.batch import token_batch


@pytest.fixture(scope="module")
def rollouts(tiny_moe):
    requests = [Request(str(n), np.arange(n, n + 4 + n, dtype=np.int32), 3) for n in range(4)]
    return list(HFRolloutEngine(tiny_moe).generate(requests, Sampling(16, 1.0, seed=0)))


@pytest.fixture(scope="module")
def batch(rollouts) -> TokenBatch:
    scored_ones = [ScoredRollout(one, "", scored(1.0, "correct"), 0.0) for one in rollouts]
    return token_batch(scored_ones, use_routes=True)


def likelihood(logprobs_NT, batch):
    return -(logprobs_NT * batch.response_NT).sum() / 100, {
        "tokens": float(batch.response_NT.sum())
    }


def test_scores_equal_the_rollout_engines_log_probs(tiny_moe, batch):
    scores = TorchTrainer(tiny_moe).score(batch, temperature=1.0)

    assert torch.allclose(batch.columns["rollout_logprobs"], scores.logprobs_NT, atol=2e-4)
    assert not scores.logprobs_NT[~batch.response_NT].any()


def test_entropy_is_that_of_the_whole_vocabulary(tiny_moe, batch):
    trainer = TorchTrainer(tiny_moe)
    scores = trainer.score(batch, temperature=1.0)
    row, at = 0, int(batch.response_NT[0].nonzero()[0])
    with torch.inference_mode():
        logits = trainer._model(input_ids=batch.tokens_NT[row : row + 1, :at]).logits[0, -1]
    expected = torch.distributions.Categorical(logits=logits).entropy()

    assert float(expected) == pytest.approx(float(scores.entropy_NT[row, at]), abs=1e-4)


def test_native_routes_equal_the_recorded_ones_before_any_update(tiny_moe, batch):
    scores = TorchTrainer(tiny_moe).score(batch, temperature=1.0, record_routes=True)
    recorded = batch.experts_NTLK
    present = (recorded >= 0).all(dim=3)
    same = scores.experts_NTLK.sort(dim=3).values == recorded.sort(dim=3).values

    assert same.all(dim=3)[present].all()


def test_replay_changes_what_other_routes_would_give(tiny_moe, batch):
    trainer = TorchTrainer(tiny_moe)
    turned = TokenBatch(
        batch.tokens_NT,
        batch.lengths_N,
        batch.response_NT,
        torch.where(batch.experts_NTLK >= 0, (batch.experts_NTLK + 3) % 8, -1),
        batch.columns,
    )

    native = trainer.score(batch, temperature=1.0).logprobs_NT
    replayed = trainer.score(turned, temperature=1.0).logprobs_NT

    assert (native - replayed).abs().max() > 1e-3


def test_replay_lets_gradient_into_the_routers(tiny_moe, batch):
    trainer = TorchTrainer(tiny_moe)
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=0.0)
    gates = [p for n, p in trainer._model.named_parameters() if n.endswith("gate.weight")]

    assert gates
    assert all(gate.grad.abs().sum() > 0 for gate in gates)


def test_micro_batches_give_the_gradient_of_the_whole_batch(tiny_moe, batch, monkeypatch):
    whole, split = TorchTrainer(tiny_moe), TorchTrainer(tiny_moe)
    first = whole.update(batch, likelihood, temperature=1.0, learning_rate=0.0)
    monkeypatch.setattr("tasks.engines.trainer_torch.MICRO_BATCH_TOKENS", 40)
    second = split.update(batch, likelihood, temperature=1.0, learning_rate=0.0)

    assert first == pytest.approx(second, rel=1e-4)
    for (_, one), (_, other) in zip(
        whole._model.named_parameters(), split._model.named_parameters(), strict=True
    ):
        assert torch.allclose(one.grad, other.grad, atol=1e-5)


def test_training_on_a_sequence_makes_it_likelier(tiny_moe, batch):
    trainer = TorchTrainer(tiny_moe)
    losses = [
        trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-2)["loss"]
        for _ in range(5)
    ]

    assert losses == sorted(losses, reverse=True)


def test_a_restored_trainer_makes_the_same_next_update(tiny_moe, batch, tmp_path):
    trainer, resumed = TorchTrainer(tiny_moe), TorchTrainer(tiny_moe)
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)
    trainer.save(tmp_path)
    resumed.restore(tmp_path)
    for one in (trainer, resumed):
        one.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)

    for (name, one), (_, other) in zip(trainer.weights(), resumed.weights(), strict=True):
        assert torch.equal(one, other), name


def test_a_loss_that_is_not_finite_changes_no_weight(tiny_moe, batch):
    trainer = TorchTrainer(tiny_moe)
    before = {name: tensor.clone() for name, tensor in trainer.weights()}

    with pytest.raises(EngineError, match="the update was not applied"):
        trainer.update(
            batch,
            lambda logprobs, _: (logprobs.sum() * float("nan"), {}),
            temperature=1.0,
            learning_rate=1.0,
        )

    assert all(torch.equal(before[name], tensor) for name, tensor in trainer.weights())


def test_the_state_of_another_architecture_is_refused(tiny_moe, tmp_path):
    trainer = TorchTrainer(tiny_moe)
    trainer.save(tmp_path)
    state = torch.load(tmp_path / "trainer.pt", weights_only=True)
    torch.save(state | {"config": "other"}, tmp_path / "trainer.pt")

    with pytest.raises(DataError, match="another architecture"):
        trainer.restore(tmp_path)


def test_an_exported_policy_opens_as_the_same_model(tiny_moe, batch, tmp_path):
    trainer = TorchTrainer(tiny_moe)
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-2)
    trainer.export(tmp_path)
    opened = TorchTrainer(tmp_path)

    for (name, one), (_, other) in zip(trainer.weights(), opened.weights(), strict=True):
        assert torch.equal(one, other), name
