"""What every rollout engine promises, checked on those installed here."""

import dataclasses

import numpy as np
import pytest
import torch

from data_schemas.rollouts import StopReason
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.routing import check_trace
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_hf import HFRolloutEngine
from tasks.engines.trainer_torch import TorchTrainer
from tasks.errors import EngineError

SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)


def prompts(*lengths):
    generator = np.random.default_rng(0)
    return [
        Request(f"p{place}", generator.integers(0, 250, length).astype(np.int32), 3)
        for place, length in enumerate(lengths)
    ]


@pytest.fixture(scope="module")
def engine(tiny_moe):
    return HFRolloutEngine(tiny_moe)


@pytest.fixture(scope="module")
def rollouts(engine):
    return list(engine.generate(prompts(5, 9, 2), SAMPLING))


def test_every_request_comes_back_exactly_as_often_as_asked(rollouts):
    found = sorted((rollout.problem_id, rollout.sample) for rollout in rollouts)

    assert [(f"p{p}", s) for p in range(3) for s in range(3)] == found


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others(engine, rollouts):
    again = list(engine.generate(prompts(5, 9, 2), SAMPLING))
    other = list(engine.generate(prompts(5, 9, 2), dataclasses.replace(SAMPLING, seed=4)))

    assert [r.response_tokens.tolist() for r in rollouts] == [
        r.response_tokens.tolist() for r in again
    ]
    assert [r.response_tokens.tolist() for r in rollouts] != [
        r.response_tokens.tolist() for r in other
    ]


def test_traces_have_a_row_per_fed_token_and_distinct_experts(engine, rollouts):
    for rollout in rollouts:
        length = len(rollout.prompt_tokens) + len(rollout.response_tokens)
        check_trace(rollout.trace, length, engine.num_experts)


def test_a_response_ends_with_its_end_token_or_at_the_limit(engine, tiny_moe):
    many = list(engine.generate(prompts(*[4] * 60), Sampling(40, 2.0, seed=0)))
    end = {r.response_tokens[-1] for r in many if r.stop_reason is StopReason.END}

    assert len(end) == 1
    assert all(len(r.response_tokens) == 40 for r in many if r.stop_reason is StopReason.LENGTH)
    assert {StopReason.END, StopReason.LENGTH} == {r.stop_reason for r in many}


def test_batching_does_not_change_what_a_prompt_is_worth(engine, tiny_moe):
    """Log-probs of a sampled response are those of the model on that sequence alone."""
    trainer = TorchTrainer(tiny_moe)
    many = list(engine.generate(prompts(3, 17, 8, 30), Sampling(30, 1.0, seed=1)))
    for rollout in many:
        tokens = np.concatenate([rollout.prompt_tokens, rollout.response_tokens])
        with torch.inference_mode():
            logits = trainer._model(
                input_ids=torch.from_numpy(tokens[None].astype(np.int64))
            ).logits
        logprobs = torch.log_softmax(logits[0], dim=1)
        start = len(rollout.prompt_tokens)
        alone = [float(logprobs[i - 1, tokens[i]]) for i in range(start, len(tokens))]

        assert alone == pytest.approx(rollout.logprobs.tolist(), abs=2e-4)


def test_greedy_takes_the_likeliest_token(engine):
    first, second, *_ = engine.generate(prompts(6), Sampling(8, 0.0, seed=1))

    assert first.response_tokens.tolist() == second.response_tokens.tolist()


def test_new_weights_are_installed_whole_and_proven_by_digest(tiny_moe):
    engine, trainer = HFRolloutEngine(tiny_moe), TorchTrainer(tiny_moe)
    with torch.no_grad():
        for _, tensor in trainer.weights():
            tensor.add_(0.01)

    digest = engine.load_weights(trainer.weights(), version=7)

    assert weight_digest(trainer.weights()) == digest
    assert 7 == engine.policy_version


def test_a_hand_over_that_does_not_fit_is_refused_by_name(tiny_moe):
    engine, trainer = HFRolloutEngine(tiny_moe), TorchTrainer(tiny_moe)
    weights = dict(trainer.weights())
    weights.pop("model.norm.weight")

    with pytest.raises(EngineError, match=r"model\.norm\.weight"):
        engine.load_weights(iter(weights.items()), version=1)
