"""What the embedded engine promises beyond the contract: slots, and responses cut anywhere."""

import dataclasses

import numpy as np
import pytest
import torch
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeTopKRouter

from data_schemas.machine_settings import Precision
from data_schemas.rollouts import StopReason
from tasks.algorithms import logprobs
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.errors import SettingsError
from tests.engines.embedded.peak_memory import PeakMemory

SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)


def prompts(*lengths):
    generator = np.random.default_rng(0)
    return [
        Request(f"p{place}", generator.integers(0, 250, length).astype(np.int32), 3)
        for place, length in enumerate(lengths)
    ]


def by_key(rollouts):
    return {(r.problem_id, r.sample): r.response_tokens.tolist() for r in rollouts}


@pytest.fixture(scope="module")
def engine(tiny_moe):
    return HFRolloutEngine(tiny_moe)


@pytest.fixture(scope="module")
def rollouts(engine):
    return list(engine.generate(prompts(5, 9, 2), SAMPLING))


@pytest.mark.parametrize("slots", [1, 4, 5])
def test_neither_slots_nor_order_change_what_is_drawn(tiny_moe, rollouts, slots):
    engine = HFRolloutEngine(tiny_moe, slots=slots)

    assert slots == engine.slots(64) == engine.slots(10**6)
    assert by_key(rollouts) == by_key(engine.generate(prompts(5, 9, 2)[::-1], SAMPLING))


def test_a_rollout_is_yielded_while_others_are_still_waiting(tiny_moe):
    engine = HFRolloutEngine(tiny_moe, slots=2)
    stream = engine.generate(prompts(5, 9, 2), SAMPLING)

    assert "p0" == next(stream).problem_id
    assert engine.counters.sequences <= 2
    assert 5 == engine.counters.prompt_tokens
    assert 8 == len(list(stream))


def test_counters_do_not_depend_on_the_slots(tiny_moe):
    engine = HFRolloutEngine(tiny_moe, slots=4)
    found = list(engine.generate(prompts(5, 9, 2), SAMPLING))

    assert len(found) == engine.counters.sequences
    assert sum(len(r.response_tokens) for r in found) == engine.counters.generated_tokens
    assert 5 + 9 + 2 == engine.counters.prompt_tokens


def test_scores_of_long_sequences_never_have_all_logits_in_memory(engine, monkeypatch):
    sequence = [prompts(240)[0].prompt_tokens]
    expected = engine.score_logprobs(sequence)
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", 7 * 288)
    with PeakMemory() as memory:
        found = engine.score_logprobs(sequence)

    assert memory.largest < 239 * 288 * 4
    assert expected[0] == pytest.approx(found[0], abs=1e-5)


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


@pytest.mark.parametrize(("due", "made"), [("p1", 5), ("p0", 12)])
def test_a_call_ends_when_enough_prompts_and_all_that_are_due_have_ended(
    engine, rollouts, due, made
):
    whole = {(r.problem_id, r.sample): r for r in rollouts}
    long, begun, _ = prompts(5, 9, 2)
    earlier = whole["p1", 0].response_tokens[:7]
    begun = dataclasses.replace(begun, num_samples=1, response_tokens=earlier)
    asked = [dataclasses.replace(one, due=one.problem_id == due) for one in (long, begun)]

    found = list(engine.generate(asked, dataclasses.replace(SAMPLING, enough=1)))

    rest = next(r for r in found if r.problem_id == "p1")
    assert whole["p1", 0].response_tokens.tolist() == [*earlier, *rest.response_tokens]
    assert whole["p1", 0].stop_reason is rest.stop_reason
    cut = [r for r in found if r.problem_id == "p0"]
    assert {12} == {len(whole["p0", r.sample].response_tokens) for r in cut}
    for one in cut:
        expected = whole["p0", one.sample].response_tokens
        assert expected[:made].tolist() == one.response_tokens.tolist()
        assert (StopReason.SEGMENT if made < 12 else StopReason.LENGTH) is one.stop_reason


def test_what_has_not_begun_when_a_call_ends_yields_nothing(tiny_moe):
    engine = HFRolloutEngine(tiny_moe, slots=1)

    found = list(engine.generate(prompts(5, 9, 2), dataclasses.replace(SAMPLING, enough=1)))

    assert {"p0"} == {r.problem_id for r in found}
    assert prompts(5)[0].num_samples == len(found)
    assert sum(len(r.response_tokens) for r in found) == engine.counters.generated_tokens


def test_a_precision_the_engine_lacks_is_refused_by_name(tiny_moe):
    with pytest.raises(SettingsError, match=r"precision 'fp8' needs engines\.rollout 'vllm'"):
        HFRolloutEngine(tiny_moe, precision=Precision.FP8)


def routers(engine):
    return [module for module in engine._model.modules() if isinstance(module, Qwen3MoeTopKRouter)]


def test_routers_in_fp32_are_never_cast_down(tiny_moe):
    trainer = TorchTrainer(tiny_moe)
    engine = HFRolloutEngine(tiny_moe, precision=Precision.BF16, fp32_router=True)
    before = [router.weight.clone() for router in routers(engine)]
    whole = [router.weight for router in routers(HFRolloutEngine(tiny_moe))]

    assert before
    assert all(map(torch.equal, whole, before))
    assert not all(map(torch.equal, whole, [weight.bfloat16().float() for weight in whole]))

    changed = {name: 1.001 * tensor for name, tensor in trainer.weights()}
    engine.load_weights(iter(changed.items()), 1)
    after = [router.weight for router in routers(engine)]
    assert {torch.float32} == {weight.dtype for weight in after}
    assert all(map(torch.equal, [1.001 * weight for weight in before], after))


def test_routers_in_fp32_compute_logits_in_fp32(tiny_moe):
    engine = HFRolloutEngine(tiny_moe, precision=Precision.BF16, fp32_router=True)
    found = set()
    for router in routers(engine):
        router.register_forward_hook(lambda _module, _args, output: found.add(output[0].dtype))

    assert 3 == len(list(engine.generate(prompts(5), SAMPLING)))
    assert {torch.float32} == found


def test_a_dense_model_has_no_router_to_keep_in_fp32(tiny_dense):
    with pytest.raises(SettingsError, match=r"engines\.fp32_router is set, but a dense model"):
        HFRolloutEngine(tiny_dense, precision=Precision.BF16, fp32_router=True)
