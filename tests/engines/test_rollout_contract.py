"""What every rollout engine promises, checked on those installed here."""

import dataclasses

import numpy as np
import pytest
import torch

from data_schemas.machine_settings import MachineSettings, Precision
from data_schemas.rollouts import StopReason
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.routing import check_trace
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_hf import HFRolloutEngine
from tasks.engines.select import open_rollout
from tasks.engines.trainer_torch import TorchTrainer
from tasks.errors import DataError, EngineError, SettingsError

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


def by_key(rollouts):
    return {(r.problem_id, r.sample): r.response_tokens.tolist() for r in rollouts}


@pytest.mark.parametrize("slots", [1, 4, 5])
def test_neither_slots_nor_order_change_what_is_drawn(tiny_moe, rollouts, slots):
    engine = HFRolloutEngine(tiny_moe, slots=slots)

    assert slots == engine.slots
    assert by_key(rollouts) == by_key(engine.generate(prompts(5, 9, 2)[::-1], SAMPLING))


def test_a_rollout_is_yielded_while_others_are_still_waiting(tiny_moe):
    engine = HFRolloutEngine(tiny_moe, slots=2)
    stream = engine.generate(prompts(5, 9, 2), SAMPLING)

    assert "p0" == next(stream).problem_id
    assert engine.counters.sequences <= 2
    assert 5 == engine.counters.prompt_tokens
    assert 8 == len(list(stream))


def test_parts_of_a_response_join_to_the_whole_of_it(engine, rollouts):
    whole = {(r.problem_id, r.sample): r for r in rollouts}
    cut = dataclasses.replace(SAMPLING, segment_tokens=5)
    (request,) = prompts(5)
    for first in engine.generate([request], cut):
        if first.stop_reason is not StopReason.SEGMENT:
            continue
        rest = dataclasses.replace(
            request,
            num_samples=1,
            first_sample=first.sample,
            response_tokens=first.response_tokens,
        )
        (second,) = engine.generate([rest], SAMPLING)
        expected = whole["p0", first.sample]
        joined = np.concatenate([first.response_tokens, second.response_tokens])

        assert 5 == len(first.response_tokens)
        assert expected.response_tokens.tolist() == joined.tolist()
        assert expected.stop_reason is second.stop_reason
        assert expected.logprobs[5:].tolist() == pytest.approx(second.logprobs.tolist(), abs=1e-4)
        assert np.array_equal(expected.trace.experts_TLK, second.trace.experts_TLK)
        assert 5 + 5 - 1 == len(first.trace.experts_TLK)


def test_a_response_that_is_complete_cannot_go_on(engine):
    (request,) = prompts(5)
    done = dataclasses.replace(request, response_tokens=np.zeros(12, dtype=np.int32))

    with pytest.raises(DataError, match="p0 already has 12 of 12 response tokens"):
        list(engine.generate([done], SAMPLING))
    with pytest.raises(DataError, match="p0 has no prompt token"):
        list(engine.generate(prompts(0), SAMPLING))


def test_counters_are_the_sums_over_the_rollouts(tiny_moe):
    engine = HFRolloutEngine(tiny_moe, slots=4)
    found = list(engine.generate(prompts(5, 9, 2), SAMPLING))

    assert len(found) == engine.counters.sequences
    assert sum(len(r.response_tokens) for r in found) == engine.counters.generated_tokens
    assert 5 + 9 + 2 == engine.counters.prompt_tokens
    assert engine.counters.decode_seconds > 0 < engine.counters.prefill_seconds


def test_a_probe_says_what_the_trainer_says_of_the_same_weights(engine, tiny_moe):
    trainer = TorchTrainer(tiny_moe)
    sequences = [request.prompt_tokens for request in prompts(7, 1, 20)]
    for tokens, found in zip(sequences, engine.probe(sequences), strict=True):
        with torch.inference_mode():
            whole = torch.from_numpy(tokens.astype(np.int64))
            logprobs = trainer._model(input_ids=whole[None]).logits[0, :-1].log_softmax(1)
        expected = logprobs.gather(1, whole[1:, None])[:, 0]

        assert expected.tolist() == pytest.approx(found.tolist(), abs=1e-4)


def test_bf16_is_another_numeric_of_the_same_weights(engine, tiny_moe):
    half = open_rollout(MachineSettings(precision=Precision.BF16), tiny_moe)
    trainer = TorchTrainer(tiny_moe)
    tokens = [request.prompt_tokens for request in prompts(30)]

    assert weight_digest(trainer.weights()) == half.load_weights(trainer.weights(), 1)
    gap = np.abs(half.probe(tokens)[0] - engine.probe(tokens)[0])
    assert 0.0 < gap.max() < 0.5
    assert 3 == len(list(half.generate(prompts(4), SAMPLING)))


def test_a_precision_the_engine_lacks_is_refused_by_name(tiny_moe):
    with pytest.raises(SettingsError, match=r"precision 'fp8' needs engines\.rollout 'vllm'"):
        open_rollout(MachineSettings(precision=Precision.FP8), tiny_moe)
