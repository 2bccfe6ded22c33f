"""What every trainer promises, checked on those installed here."""

import importlib.util
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from data_schemas.machine_settings import LayoutSettings
from data_schemas.rollouts import ScoredRollout
from data_schemas.verdicts import scored
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling, TokenBatch, Trainer
from tasks.errors import DataError, EngineError, SettingsError
from tasks.rl.batch import token_batch
from tests.engines.losses_of_contract import broken, likelihood
from tests.engines.trainer_megatron.world_of_trainers import RemoteTrainer, trainer_world

SMALLEST = 64
"""Tokens of the smallest micro-batch that a layout allows: several for the batch here."""
MEGATRON = {
    "megatron": (1, LayoutSettings()),
    "megatron_data2": (2, LayoutSettings()),
    "megatron_pipeline2_recompute": (2, LayoutSettings(pipeline=2, recompute=True)),
    "megatron_expert2": (2, LayoutSettings(expert=2)),
}
Open = Callable[..., Trainer]


@contextmanager
def megatron_trainers(size: int, layout: LayoutSettings) -> Iterator[Open]:
    with trainer_world(size) as ranks:

        def open_one(folder: Path, *, micro_batch_tokens: int = 8192) -> Trainer:
            asked = layout.model_copy(update={"micro_batch_tokens": micro_batch_tokens})
            return RemoteTrainer(ranks, folder, asked)

        yield open_one


@pytest.fixture(
    scope="module",
    params=["torch", *(pytest.param(name, marks=pytest.mark.engines) for name in MEGATRON)],
)
def opened(request) -> Iterator[Open]:
    """A function that opens a trainer on a model directory, micro-batch size as asked."""
    if request.param != "torch" and importlib.util.find_spec("megatron") is None:
        pytest.skip("megatron-core is not installed")
    one_process = request.param == "torch"
    kind = nullcontext(TorchTrainer) if one_process else megatron_trainers(*MEGATRON[request.param])
    with kind as open_one:
        yield open_one


@pytest.fixture(scope="module")
def rollouts(tiny_moe):
    requests = [Request(str(n), np.arange(n, n + 4 + n, dtype=np.int32), 3) for n in range(4)]
    return list(HFRolloutEngine(tiny_moe).generate(requests, Sampling(16, 1.0, seed=0)))


@pytest.fixture(scope="module")
def batch(rollouts) -> TokenBatch:
    scored_ones = [ScoredRollout(one, "", scored(1.0, "correct"), 0.0) for one in rollouts]
    return token_batch(scored_ones, use_routes=True)


def test_a_dense_model_is_trained_and_sampled_without_routes(opened, tiny_dense, request):
    if "expert" in request.node.callspec.params["opened"]:
        with pytest.raises(SettingsError, match=r"layout\.expert is 2, but qwen\d has no experts"):
            opened(tiny_dense)
        return
    engine = HFRolloutEngine(tiny_dense)
    requests = [Request(str(n), np.arange(n, n + 4 + n, dtype=np.int32), 3) for n in range(4)]
    rollouts = list(engine.generate(requests, Sampling(16, 1.0, seed=0)))
    items = [ScoredRollout(one, "", scored(1.0, "correct"), 0.0) for one in rollouts]
    batch = token_batch(items, use_routes=False)
    trainer = opened(tiny_dense)

    before = trainer.score(batch, temperature=1.0, record_routes=False)
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)
    after = trainer.score(batch, temperature=1.0, record_routes=False)
    digest = engine.load_weights(trainer.weights(), version=1)

    assert 0 == engine.num_experts
    assert {None} == {one.trace for one in rollouts}
    assert torch.allclose(batch.columns["rollout_logprobs"], before.logprobs_NT, atol=1e-4)
    assert float((after.logprobs_NT - before.logprobs_NT).sum()) > 0.0
    assert weight_digest(trainer.weights()) == digest
    whole = [np.concatenate([one.prompt_tokens, one.response_tokens]) for one in rollouts]
    for row, (one, logprobs) in enumerate(zip(rollouts, engine.score_logprobs(whole), strict=True)):
        first, last = len(one.prompt_tokens), len(whole[row])
        assert np.allclose(
            after.logprobs_NT[row, first:last].numpy(), logprobs[first - 1 :], atol=1e-4
        )


def other_routes(batch) -> TokenBatch:
    recorded_NTLK = batch.padded_routes_NTLK
    experts_NTLK = torch.where(recorded_NTLK >= 0, (recorded_NTLK + 3) % 8, -1)
    return TokenBatch(
        batch.tokens_NT, batch.lengths_N, batch.response_NT, experts_NTLK, batch.columns
    )


def gates(trainer) -> dict[str, torch.Tensor]:
    return {n: t.clone() for n, t in trainer.weights() if n.endswith("gate.weight")}


def test_scores_equal_the_rollout_engines_log_probs(opened, tiny_moe, batch):
    scores = opened(tiny_moe).score(batch, temperature=1.0, record_routes=False)

    assert torch.allclose(batch.columns["rollout_logprobs"], scores.logprobs_NT, atol=2e-4)
    assert not scores.logprobs_NT[~batch.response_NT].any()


def test_tokens_of_an_environment_have_no_score_and_no_gradient(opened, tiny_moe, rollouts, batch):
    """The middle of a response was read, not sampled: the rest scores as if it had been."""
    masks = [np.arange(len(one.response_tokens)) % 5 < 3 for one in rollouts]
    items = [
        ScoredRollout(replace(one, sampled=mask), "", scored(1.0, "correct"), 0.0)
        for one, mask in zip(rollouts, masks, strict=True)
    ]
    episodes, trainer = token_batch(items, use_routes=True), opened(tiny_moe)
    whole = trainer.score(batch, temperature=1.0, record_routes=False)

    scores = trainer.score(episodes, temperature=1.0, record_routes=False)
    trainer.update(episodes, likelihood, temperature=1.0, learning_rate=1e-3)
    after = trainer.score(batch, temperature=1.0, record_routes=False)

    assert int(episodes.response_NT.sum()) == sum(int(mask.sum()) for mask in masks)
    assert torch.allclose(whole.logprobs_NT * episodes.response_NT, scores.logprobs_NT, atol=1e-5)
    gain_NT = after.logprobs_NT - whole.logprobs_NT
    heard_NT = batch.response_NT & ~episodes.response_NT
    assert gain_NT[episodes.response_NT].mean() > gain_NT[heard_NT].mean()


def test_entropy_is_that_of_the_whole_vocabulary(opened, tiny_moe, batch):
    scores = opened(tiny_moe).score(batch, temperature=1.0, record_routes=False)
    row, at = 0, int(batch.response_NT[0].nonzero()[0])
    with torch.inference_mode():
        logits = load_model(tiny_moe)(input_ids=batch.tokens_NT[row : row + 1, :at]).logits[0, -1]
    expected = torch.distributions.Categorical(logits=logits).entropy()

    assert float(expected) == pytest.approx(float(scores.entropy_NT[row, at]), abs=1e-4)


def test_a_temperature_flattens_the_distribution(opened, tiny_moe, batch):
    trainer = opened(tiny_moe)
    cold = trainer.score(batch, temperature=0.5, record_routes=False)
    hot = trainer.score(batch, temperature=2.0, record_routes=False)

    assert (cold.entropy_NT < hot.entropy_NT)[batch.response_NT].all()


@pytest.fixture(scope="module")
def truncated(tiny_moe) -> TokenBatch:
    """Responses that top-p and top-k cut, with the sets that they were drawn from."""
    sampling = Sampling(16, 0.8, seed=0, top_p=0.9, top_k=20, record_kept=True)
    requests = [Request(str(n), np.arange(n, n + 4 + n, dtype=np.int32), 3) for n in range(4)]
    rollouts = HFRolloutEngine(tiny_moe).generate(requests, sampling)
    return token_batch(
        [ScoredRollout(one, "", scored(1.0, "correct"), 0.0) for one in rollouts], use_routes=True
    )


@pytest.mark.parametrize("tokens", [8192, SMALLEST])
def test_scores_over_recorded_sets_are_those_of_the_rollout_engine(
    opened, tiny_moe, truncated, tokens
):
    trainer = opened(tiny_moe, micro_batch_tokens=tokens)

    scores = trainer.score(truncated, temperature=0.8, record_routes=False)
    whole = trainer.score(replace(truncated, kept_N=None), temperature=0.8, record_routes=False)

    drawn_NT, response_NT = truncated.columns["rollout_logprobs"], truncated.response_NT
    assert torch.allclose(drawn_NT, scores.logprobs_NT, atol=2e-4)
    assert torch.equal(whole.entropy_NT, scores.entropy_NT)
    # The kept mass: every token would look less likely than it was.
    assert (whole.logprobs_NT < drawn_NT)[response_NT].float().mean() > 0.9
    assert (drawn_NT - whole.logprobs_NT)[response_NT].max() > 0.05


def test_all_trainers_make_the_same_update_over_recorded_sets(opened, tiny_moe, truncated):
    def trained(trainer):
        settings = {"temperature": 0.8, "learning_rate": 1e-3}
        auxiliary = Auxiliary(entropy=0.01)
        metrics = trainer.update(truncated, likelihood, auxiliary=auxiliary, **settings)
        after = trainer.score(truncated, temperature=0.8, record_routes=False)
        return metrics["grad_norm"], after.logprobs_NT

    norm, expected_NT = trained(TorchTrainer(tiny_moe))
    found, logprobs_NT = trained(opened(tiny_moe, micro_batch_tokens=SMALLEST))

    assert norm == pytest.approx(found, rel=1e-3)
    assert torch.allclose(expected_NT, logprobs_NT, atol=1e-3)


def test_native_routes_equal_the_recorded_ones_before_any_update(opened, tiny_moe, batch):
    scores = opened(tiny_moe).score(batch, temperature=1.0, record_routes=True)
    recorded = batch.padded_routes_NTLK
    present = (recorded >= 0).all(dim=3)
    same = scores.experts_NTLK.sort(dim=3).values == recorded.sort(dim=3).values
    real_NT = torch.arange(batch.tokens_NT.shape[1]) < batch.lengths_N[:, None]

    assert same.all(dim=3)[present].all()
    assert (scores.experts_NTLK >= 0).all(dim=3).all(dim=2).equal(real_NT)


def test_replay_changes_what_other_routes_would_give(opened, tiny_moe, batch):
    trainer = opened(tiny_moe)

    native = trainer.score(batch, temperature=1.0, record_routes=False).logprobs_NT
    replayed = trainer.score(other_routes(batch), temperature=1.0, record_routes=False).logprobs_NT

    assert (native - replayed).abs().max() > 1e-3


def test_all_trainers_compute_the_same_under_replay(opened, tiny_moe, batch):
    turned = other_routes(batch)
    expected = TorchTrainer(tiny_moe).score(turned, temperature=0.7, record_routes=True)
    found = opened(tiny_moe).score(turned, temperature=0.7, record_routes=True)

    assert torch.allclose(expected.logprobs_NT, found.logprobs_NT, atol=1e-5)
    assert torch.allclose(expected.entropy_NT, found.entropy_NT, atol=1e-4)
    assert torch.equal(expected.experts_NTLK.sort(3).values, found.experts_NTLK.sort(3).values)


def test_replay_lets_gradient_into_the_routers(opened, tiny_moe, batch):
    trainer = opened(tiny_moe)
    before = gates(trainer)
    trainer.update(other_routes(batch), likelihood, temperature=1.0, learning_rate=1e-3)
    after = gates(trainer)

    assert before
    assert all((after[name] - before[name]).abs().max() > 1e-4 for name in before)


def test_micro_batches_give_the_gradient_of_the_whole_batch(opened, tiny_moe, batch):
    auxiliary = Auxiliary(entropy=0.01, balance=0.01, router_z=1e-3)
    changed = []
    for tokens in (8192, SMALLEST):
        trainer = opened(tiny_moe, micro_batch_tokens=tokens)
        metrics = [
            trainer.update(
                batch, likelihood, temperature=1.0, learning_rate=1e-3, auxiliary=auxiliary
            )
            for _ in range(2)
        ]
        changed.append((metrics, dict(trainer.weights())))
    (whole, one), (split, other) = changed

    assert [pytest.approx(step, rel=1e-4) for step in whole] == split
    assert all(torch.allclose(one[name], other[name], atol=2e-5) for name in one)


def test_training_on_a_sequence_makes_it_likelier(opened, tiny_moe, batch):
    trainer = opened(tiny_moe)
    losses = [
        trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-2)["loss"]
        for _ in range(5)
    ]

    assert losses == sorted(losses, reverse=True)


def test_an_empty_batch_has_empty_scores(opened, tiny_moe, batch):
    nothing = batch.select(torch.zeros(0, dtype=torch.int64))
    scores = opened(tiny_moe).score(nothing, temperature=1.0, record_routes=True)

    assert (0, 0) == tuple(scores.logprobs_NT.shape)


def test_untouched_weights_have_the_digest_of_the_directory(opened, tiny_moe):
    expected = weight_digest(TorchTrainer(tiny_moe).weights())

    assert expected == weight_digest(opened(tiny_moe).weights())


def test_a_restored_trainer_makes_the_same_next_update(opened, tiny_moe, batch, tmp_path):
    trainer, resumed = opened(tiny_moe), opened(tiny_moe)
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)
    trainer.save(tmp_path)
    resumed.restore(tmp_path)
    for one in (trainer, resumed):
        one.update(batch, likelihood, temperature=1.0, learning_rate=1e-3)

    for (name, one), (_, other) in zip(trainer.weights(), resumed.weights(), strict=True):
        assert torch.equal(one, other), name


def test_a_loss_that_is_not_finite_changes_no_weight(opened, tiny_moe, batch):
    trainer = opened(tiny_moe)
    before = {name: tensor.clone() for name, tensor in trainer.weights()}

    with pytest.raises(EngineError, match="the update was not applied"):
        trainer.update(batch, broken, temperature=1.0, learning_rate=1.0)

    assert all(torch.equal(before[name], tensor) for name, tensor in trainer.weights())
    assert np.isfinite(
        trainer.update(batch, likelihood, temperature=1.0, learning_rate=0.0)["grad_norm"]
    )


def test_the_state_of_another_architecture_is_refused(opened, tiny_moe, tmp_path):
    narrow, saved = tmp_path / "narrow", tmp_path / "saved"
    config = AutoConfig.from_pretrained(tiny_moe)
    config.moe_intermediate_size //= 2
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(narrow)
    load_tokenizer(tiny_moe).save_pretrained(narrow)
    saved.mkdir()
    opened(narrow).save(saved)

    with pytest.raises(DataError, match="another architecture"):
        opened(tiny_moe).restore(saved)


def test_an_exported_policy_opens_as_the_same_model(opened, tiny_moe, batch, tmp_path):
    trainer = opened(tiny_moe)
    trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-2)
    trainer.export(tmp_path)
    expected = dict(trainer.weights())
    found = dict(TorchTrainer(tmp_path).weights())

    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "qwen3_moe"


def test_what_is_exported_stops_by_itself_at_every_end_of_a_response(opened, tiny_moe, tmp_path):
    prompt = torch.tensor([[5, 6, 7]])
    free = AutoModelForCausalLM.from_pretrained(tiny_moe)
    free.generation_config.eos_token_id = None
    tokens = free.generate(prompt, max_new_tokens=12, do_sample=False)[0, 3:].tolist()
    end = tokens[3]  # the base's config names it, its generation settings and tokenizer do not
    folder = shutil.copytree(tiny_moe, tmp_path / "base")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": end}))

    opened(folder).export(tmp_path / "out")

    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    own = load_tokenizer(tiny_moe).eos_token_id
    assert {own, end} <= set(exported.generation_config.eos_token_id)
    expected = tokens[: tokens.index(end) + 1]
    assert expected == exported.generate(prompt, max_new_tokens=12, do_sample=False)[0, 3:].tolist()
