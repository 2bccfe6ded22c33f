"""Adjugate experts in the embedded engines: rollouts, training, replayed routes, weight syncs."""

import numpy as np
import pytest
import torch

from data_schemas.rollouts import ScoredRollout
from data_schemas.settings import MergeSettings
from data_schemas.verdicts import scored
from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.lora.canary import check_adapter
from tasks.engines.lora.merged_rollout import AdapterRollout
from tasks.engines.protocols import Request, Sampling
from tasks.lab.recipes.grove_moe.model import GroveMoeSparseMoeBlock
from tasks.models.weights import Weights
from tasks.rl.batch import token_batch
from tasks.training.merge import checkpoint as merge
from tests.engines.losses_of_contract import likelihood

DOWN = "model.layers.1.mlp.chunk_experts.2.down_proj.weight"


def generate(engine):
    requests = [Request(str(n), np.arange(n, n + 4 + n, dtype=np.int32), 3) for n in range(4)]
    sampling = Sampling(16, 1.0, seed=0)
    return sorted(engine.generate(requests, sampling), key=lambda one: (one.problem_id, one.sample))


def batch_of(rollouts):
    return token_batch(
        [ScoredRollout(one, "", scored(1.0, "correct"), 0.0) for one in rollouts], use_routes=True
    )


def largest_gap(trainer, batch, rollouts):
    """Trainer against rollout engine, over all response tokens."""
    found = trainer.score(batch, temperature=1.0).logprobs_NT[batch.response_NT]
    recorded = torch.from_numpy(np.concatenate([one.logprobs for one in rollouts]))
    return float((found - recorded).abs().max())


def silence(model):
    """Let the adjugates say nothing."""
    for block in model.modules():
        if isinstance(block, GroveMoeSparseMoeBlock):
            torch.nn.init.zeros_(block.chunk_experts.down_proj)


@pytest.fixture(scope="module")
def rollouts(tiny_grove):
    return generate(HFRolloutEngine(tiny_grove))


@pytest.fixture
def trainer(tiny_grove):
    return TorchTrainer(tiny_grove)


def test_rollouts_and_trainer_agree_and_the_adjugates_are_in_both(rollouts, trainer):
    batch = batch_of(rollouts)
    agreed = largest_gap(trainer, batch, rollouts)
    silence(trainer._model)

    assert agreed < 1e-5
    assert largest_gap(trainer, batch, rollouts) > 0.1


def test_adjugates_follow_replayed_routes(rollouts, trainer):
    """A router that has changed and is replayed gives its adjugates the recorded experts."""
    batch = batch_of(rollouts)
    seen: list[torch.Tensor] = []

    def see(_module, inputs, _output):
        seen.append(inputs[1])

    blocks = [m for m in trainer._model.modules() if isinstance(m, GroveMoeSparseMoeBlock)]
    for block in blocks:
        block.chunk_experts.register_forward_hook(see)
        block.gate.weight.data.neg_()
    trainer.score(batch, temperature=1.0)
    routes_NTLK = batch.padded_routes_NTLK
    recorded_LMK = routes_NTLK[routes_NTLK[..., 0, 0] >= 0].movedim(1, 0)

    assert len(seen) == len(blocks)
    for groups_MK, recorded_MK in zip(seen, recorded_LMK, strict=True):
        used = {tuple(sorted(set(row) - {4})) for row in groups_MK.tolist()}
        assert {tuple(sorted({e // 2 for e in row})) for row in recorded_MK.tolist()} <= used


def test_an_update_trains_adjugates_and_a_weight_sync_installs_them(tiny_grove, rollouts, trainer):
    engine, batch = HFRolloutEngine(tiny_grove), batch_of(rollouts)
    before = dict(trainer.weights())[DOWN].clone()
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-2)
    sent = dict(trainer.weights())

    assert not torch.equal(before, sent[DOWN])
    assert weight_digest(sent.items()) == engine.load_weights(iter(sent.items()), version=1)
    after = generate(engine)
    assert largest_gap(trainer, batch_of(after), after) < 1e-5


@pytest.mark.slow
def test_adapters_cover_the_adjugates_and_an_export_merges_them(tiny_grove, rollouts, tmp_path):
    trainer = TorchTrainer(tiny_grove, lora_rank=8)
    engine = AdapterRollout(HFRolloutEngine(tiny_grove), tiny_grove, rank=8)

    assert 0 == check_adapter(engine, trainer, 280, version=0)
    assert {DOWN.replace(".weight", f".lora_{side}.weight") for side in "AB"} < {
        name for name, _ in trainer.weights()
    }
    trainer.update(batch_of(rollouts), likelihood, temperature=1.0, learning_rate=1e-2)
    trainer.export(tmp_path)
    engine.load_weights(trainer.weights(), version=1)
    assert [one.response_tokens.tolist() for one in generate(engine)] == [
        one.response_tokens.tolist() for one in generate(HFRolloutEngine(tmp_path))
    ]


def test_a_state_and_an_exported_model_restore_the_adjugates(tiny_grove, rollouts, tmp_path):
    one, other = TorchTrainer(tiny_grove), TorchTrainer(tiny_grove)
    one.update(batch_of(rollouts), likelihood, temperature=1.0, learning_rate=1e-2)
    one.save(tmp_path)
    other.restore(tmp_path)
    one.export(tmp_path / "model")

    digests = [weight_digest(trainer.weights()) for trainer in (one, other)]
    digests.append(weight_digest(TorchTrainer(tmp_path / "model").weights()))
    assert [digests[0]] * 3 == digests


def test_two_parents_of_one_upcycled_base_are_merged(tiny_grove, rollouts, tmp_path):
    parents = []
    for name, rate in (("reasoning", 1e-3), ("commerce", 2e-3)):
        trainer = TorchTrainer(tiny_grove)
        trainer.update(batch_of(rollouts), likelihood, temperature=1.0, learning_rate=rate)
        trainer.export(tmp_path / name)
        parents.append(tmp_path / name)
    out = tmp_path / "merged"
    out.mkdir()
    merge.merge(MergeSettings(), tiny_grove, (parents[0], parents[1]), out)

    with Weights(tiny_grove) as base, Weights(out) as merged:
        assert not torch.equal(base.read(DOWN), merged.read(DOWN))
    assert isinstance(load_model(out).get_submodule("model.layers.0.mlp"), GroveMoeSparseMoeBlock)


def test_its_experts_are_profiled_by_what_the_router_chose(tiny_grove):
    profile = pytest.importorskip("tasks.lab.recipes.super_experts.expert_profile").profile
    found = profile(tiny_grove, ["a bag costs 12 "] * 1000)

    assert [2 * found.calibration_tokens] * 2 == [sum(layer) for layer in found.tokens]
