"""What every rollout engine promises, checked on those installed here."""

import contextlib
import dataclasses
import importlib.util
import warnings

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from data_schemas.machine_settings import LayoutSettings, MachineSettings, Precision, RolloutKind
from data_schemas.rollouts import StopReason
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.kept_sets import check_kept
from tasks.algorithms.routing import check_trace
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.engines.select import open_rollout
from tasks.errors import DataError, EngineError, SettingsError
from tests.engines.siblings import deviations

SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)


def prompts(*lengths):
    generator = np.random.default_rng(0)
    return [
        Request(f"p{place}", generator.integers(0, 250, length).astype(np.int32), 3)
        for place, length in enumerate(lengths)
    ]


KINDS = [
    "hf",
    pytest.param("vllm", marks=pytest.mark.engines),
    pytest.param("vllm in a process of its own", marks=pytest.mark.engines),
]


def open_engine(kind, folder, precision=Precision.FP32):
    if kind == "hf":
        return open_rollout(MachineSettings(precision=precision), folder)
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    # Two are open at once, on a GPU also.
    layout = LayoutSettings(dedicated_rollout_gpus=int(kind != "vllm"), rollout_memory=0.4)
    with warnings.catch_warnings():
        # What vLLM's own modules do while they are imported is not ours to mend.
        warnings.simplefilter("ignore")
        return open_rollout(
            MachineSettings(rollout=RolloutKind.VLLM, precision=precision, layout=layout), folder
        )


@pytest.fixture(scope="module", params=KINDS)
def engine(request, served_moe):
    engine = open_engine(request.param, served_moe)
    yield engine
    engine.close()


@pytest.fixture
def own_weights(engine, served_moe):
    """Let a test install weights; afterwards the engine is as it was opened."""
    yield
    engine.load_weights(TorchTrainer(served_moe).weights(), version=0)


@pytest.fixture(scope="module")
def trainer(served_moe):
    return TorchTrainer(served_moe)


@pytest.fixture(scope="module")
def rollouts(engine):
    return list(engine.generate(prompts(5, 9, 2), SAMPLING))


def model_logprobs(trainer, tokens):
    """Log-probabilities of tokens 1..T-1, by transformers on that sequence alone."""
    whole = torch.from_numpy(np.asarray(tokens, dtype=np.int64))
    with torch.inference_mode():
        logprobs = trainer._model(input_ids=whole[None]).logits[0, :-1].log_softmax(1)
    return logprobs.gather(1, whole[1:, None])[:, 0].tolist()


def model_routes(trainer, tokens):
    whole = torch.from_numpy(np.asarray(tokens, dtype=np.int64))
    with torch.inference_mode():
        logits = trainer._model(input_ids=whole[None], output_router_logits=True).router_logits
    return np.stack([layer.topk(2, dim=1).indices.numpy() for layer in logits], axis=1)


def by_key(rollouts):
    return {(r.problem_id, r.sample): r.response_tokens.tolist() for r in rollouts}


def test_every_request_comes_back_exactly_as_often_as_asked(rollouts):
    found = sorted((rollout.problem_id, rollout.sample) for rollout in rollouts)

    assert [(f"p{p}", s) for p in range(3) for s in range(3)] == found


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others(engine, rollouts):
    again = by_key(engine.generate(prompts(5, 9, 2), SAMPLING))
    other = by_key(engine.generate(prompts(5, 9, 2), dataclasses.replace(SAMPLING, seed=4)))

    assert by_key(rollouts) == again
    assert by_key(rollouts) != other


def test_neither_order_nor_company_changes_what_is_drawn(engine, rollouts):
    strangers = [dataclasses.replace(one, problem_id=f"x{one.problem_id}") for one in prompts(7, 3)]
    backwards = by_key(engine.generate([*strangers, *prompts(5, 9, 2)[::-1]], SAMPLING))
    (one,) = engine.generate(
        [dataclasses.replace(prompts(5)[0], num_samples=1, first_sample=2)], SAMPLING
    )

    assert by_key(rollouts) == {key: backwards[key] for key in by_key(rollouts)}
    assert by_key(rollouts)["p0", 2] == one.response_tokens.tolist()


def test_samples_of_a_prompt_differ(rollouts):
    assert 9 == len({tuple(tokens) for tokens in by_key(rollouts).values()})


def test_samples_of_a_prompt_are_drawn_independently(engine, trainer):
    """As many pairs of siblings agree as the distribution says: draws that hang together show."""
    (request,), count = prompts(6), 200
    drawn = engine.generate([dataclasses.replace(request, num_samples=count)], Sampling(1, 0.5, 7))
    whole = torch.from_numpy(request.prompt_tokens.astype(np.int64))
    with torch.inference_mode():
        chances_V = (trainer._model(input_ids=whole[None]).logits[0, -1] / 0.5).softmax(0)

    tokens_S = torch.tensor([int(one.response_tokens[0]) for one in drawn])
    assert deviations(tokens_S, chances_V) < 5.0


def test_traces_have_a_row_per_fed_token_and_distinct_experts(engine, rollouts):
    for rollout in rollouts:
        length = len(rollout.prompt_tokens) + len(rollout.response_tokens)
        check_trace(rollout.trace, length, engine.num_experts)


def test_traces_name_the_experts_that_transformers_chooses(rollouts, trainer):
    for rollout in rollouts:
        fed = np.concatenate([rollout.prompt_tokens, rollout.response_tokens])[:-1]
        expected = np.sort(model_routes(trainer, fed), axis=2)

        assert np.array_equal(expected, np.sort(rollout.trace.experts_TLK, axis=2))


def test_routes_are_left_out_when_nobody_asks_for_them(engine):
    without = dataclasses.replace(SAMPLING, record_routes=False)

    assert [None] * 3 == [rollout.trace for rollout in engine.generate(prompts(4), without)]


def test_a_response_ends_with_its_end_token_and_may_go_on_behind_it(engine, trainer):
    many = list(engine.generate(prompts(*[4] * 60), Sampling(40, 2.0, seed=0)))
    ended = [rollout for rollout in many if rollout.stop_reason is StopReason.END]
    said = np.append(ended[0].response_tokens[-1:], np.array([7, 3], dtype=np.int32))

    assert len({rollout.response_tokens[-1] for rollout in ended}) == 1
    assert {40} == {len(r.response_tokens) for r in many if r.stop_reason is StopReason.LENGTH}
    (next_turn,) = engine.generate([Request("p", many[0].prompt_tokens, 1, 0, said)], SAMPLING)
    whole = np.concatenate([many[0].prompt_tokens, said, next_turn.response_tokens])
    assert len(whole) - 1 == len(next_turn.trace.experts_TLK)
    assert model_logprobs(trainer, whole)[6:] == pytest.approx(next_turn.logprobs, abs=1e-4)


def test_batching_does_not_change_what_a_prompt_is_worth(engine, trainer):
    """Log-probs of a sampled response are those of the model on that sequence alone."""
    for rollout in engine.generate(prompts(3, 17, 8, 30), Sampling(30, 1.0, seed=1)):
        tokens = np.concatenate([rollout.prompt_tokens, rollout.response_tokens])
        alone = model_logprobs(trainer, tokens)[len(rollout.prompt_tokens) - 1 :]

        assert alone == pytest.approx(rollout.logprobs.tolist(), abs=2e-4)


def test_log_probs_are_those_of_the_distribution_that_was_drawn_from(engine, trainer):
    (request,) = prompts(6)
    for rollout in engine.generate([request], Sampling(1, 1.7, seed=1)):
        whole = torch.from_numpy(request.prompt_tokens.astype(np.int64))
        with torch.inference_mode():
            logits = trainer._model(input_ids=whole[None]).logits[0, -1]
        expected = float((logits / 1.7).log_softmax(0)[rollout.response_tokens[0]])

        assert expected == pytest.approx(rollout.logprobs[0], abs=1e-4)


@pytest.mark.parametrize(
    ("top_p", "min_p", "top_k"), [(0.5, 0.0, 0), (1.0, 0.2, 0), (0.8, 0.1, 0), (0.8, 0.0, 30)]
)
def test_log_probs_are_those_of_the_truncated_distribution(engine, trainer, top_p, min_p, top_k):
    """Truncated by transformers; min-p comes first, as in vLLM, then top-k."""
    sampling = Sampling(12, 1.5, seed=1, top_p=top_p, min_p=min_p, top_k=top_k)
    warpers = LogitsProcessorList([TemperatureLogitsWarper(1.5)])
    warpers.extend([MinPLogitsWarper(min_p)] if min_p else [])
    warpers.extend([TopKLogitsWarper(top_k)] if top_k else [])
    warpers.extend([TopPLogitsWarper(top_p)] if top_p < 1.0 else [])
    for rollout in engine.generate(prompts(6, 9), sampling):
        tokens = np.concatenate([rollout.prompt_tokens, rollout.response_tokens])
        whole = torch.from_numpy(tokens.astype(np.int64))
        with torch.inference_mode():
            logits = trainer._model(input_ids=whole[None]).logits[0]
        drawn = logits[len(rollout.prompt_tokens) - 1 : -1]
        kept = warpers(torch.LongTensor(len(drawn), 1), drawn).log_softmax(1)
        expected = kept.gather(
            1, torch.from_numpy(rollout.response_tokens.astype(np.int64))[:, None]
        )

        assert expected[:, 0].tolist() == pytest.approx(rollout.logprobs.tolist(), abs=1e-4)


@pytest.mark.parametrize("segment_tokens", [0, 5])
def test_the_sets_that_tokens_were_drawn_from_are_recorded(engine, trainer, segment_tokens):
    """They are those that transformers keeps, also of a response that is cut."""
    if not isinstance(engine, HFRolloutEngine):
        pytest.skip("vLLM's other model runner: rollout_vllm/test_second_runner.py")
    sampling = Sampling(
        12, 0.3, seed=1, top_p=0.9, top_k=60, record_kept=True, segment_tokens=segment_tokens
    )
    warpers = LogitsProcessorList(
        [TemperatureLogitsWarper(0.3), TopKLogitsWarper(60), TopPLogitsWarper(0.9)]
    )
    sizes = set()
    for rollout in engine.generate(prompts(6, 9), sampling):
        tokens = np.concatenate([rollout.prompt_tokens, rollout.response_tokens])
        with torch.inference_mode():
            logits = trainer._model(input_ids=torch.from_numpy(tokens.astype(np.int64))[None])
        drawn = logits.logits[0, len(rollout.prompt_tokens) - 1 : -1]
        expected = warpers(torch.LongTensor(len(drawn), 1), drawn).isfinite()

        check_kept(rollout.kept, rollout.response_tokens, rollout.sampled)
        assert expected.nonzero()[:, 1].tolist() == rollout.kept.ids.tolist()
        assert expected.sum(1).tolist() == rollout.kept.counts.tolist()
        sizes |= set(rollout.kept.counts.tolist())
    assert len(sizes) > 2


def test_no_sets_are_recorded_unless_asked_for(engine):
    assert {None} == {r.kept for r in engine.generate(prompts(6), Sampling(4, 1.0, 1, top_p=0.5))}


def test_a_response_ends_where_its_text_first_contains_a_stop_string(engine, served_moe):
    tokenizer = load_tokenizer(served_moe)
    whole = list(engine.generate(prompts(5, 9), SAMPLING))
    texts = [tokenizer.decode(rollout.response_tokens[2:9]) for rollout in whole]
    stop = next(
        piece for text in texts for piece in text if piece.isascii() and piece.isprintable()
    )
    stopping = dataclasses.replace(SAMPLING, stop=(stop, "never in any text"))
    found = {(r.problem_id, r.sample): r for r in engine.generate(prompts(5, 9), stopping)}

    for rollout in whole:
        tokens = rollout.response_tokens.tolist()
        ends = [end for end in range(1, 13) if stop in tokenizer.decode(tokens[:end])]
        end = min([*ends, len(tokens)])
        stopped = found[rollout.problem_id, rollout.sample]

        assert tokens[:end] == stopped.response_tokens.tolist()
        assert rollout.logprobs[:end] == pytest.approx(stopped.logprobs, abs=1e-4)
        if ends:
            assert StopReason.STOP is stopped.stop_reason
            check_trace(stopped.trace, len(rollout.prompt_tokens) + end, engine.num_experts)
        else:
            assert rollout.stop_reason is stopped.stop_reason
    assert any(rollout.stop_reason is StopReason.STOP for rollout in found.values())


def test_greedy_decoding_reports_the_log_prob_at_temperature_one(engine, trainer):
    first, second, *_ = engine.generate(prompts(6), Sampling(8, 0.0, seed=1))
    tokens = np.concatenate([first.prompt_tokens, first.response_tokens])
    with torch.inference_mode():
        whole = torch.from_numpy(tokens.astype(np.int64))
        best = trainer._model(input_ids=whole[None]).logits[0, 5:-1].argmax(dim=1)

    assert best.tolist() == first.response_tokens.tolist() == second.response_tokens.tolist()
    assert model_logprobs(trainer, tokens)[5:] == pytest.approx(first.logprobs.tolist(), abs=1e-4)


@pytest.mark.usefixtures("own_weights")
def test_new_weights_are_installed_whole_and_proven_by_digest(engine, served_moe):
    trainer = TorchTrainer(served_moe)
    (tokens,) = [request.prompt_tokens for request in prompts(20)]
    with torch.no_grad():
        for _, tensor in trainer.weights():
            tensor.mul_(1.3)

    digest = engine.load_weights(trainer.weights(), version=7)

    assert weight_digest(trainer.weights()) == digest
    assert 7 == engine.policy_version
    assert [7] * 3 == [r.policy_version for r in engine.generate(prompts(4), SAMPLING)]
    assert model_logprobs(trainer, tokens) == pytest.approx(
        engine.score_logprobs([tokens])[0].tolist(), abs=1e-4
    )


def broken(name, tensor):
    """One weight sync that leaves out, one that invents, one that misshapes a tensor."""
    return [
        (lambda weights: weights.pop(name)),
        (lambda weights: weights.update({f"{name}.twice": tensor})),
        (lambda weights: weights.update({name: tensor[:-1]})),
    ]


@pytest.mark.usefixtures("own_weights")
def test_a_weight_sync_that_does_not_fit_is_refused_by_name_and_never_used(engine, trainer):
    """Either the engine computes as before, or not at all until a whole weight sync has come."""
    (tokens,) = [request.prompt_tokens for request in prompts(20)]
    before = engine.score_logprobs([tokens])[0].tolist()
    name, version = "model.norm.weight", engine.policy_version
    for spoil in broken(name, dict(trainer.weights())[name]):
        weights = {key: tensor + 1.0 for key, tensor in trainer.weights()}
        spoil(weights)

        with pytest.raises(EngineError, match=r"model\.norm\.weight"):
            engine.load_weights(iter(weights.items()), version=1)
        assert version == engine.policy_version
        with contextlib.suppress(EngineError):
            assert before == engine.score_logprobs([tokens])[0].tolist()


def later(request, rollout):
    return dataclasses.replace(
        request,
        num_samples=1,
        first_sample=rollout.sample,
        response_tokens=rollout.response_tokens,
    )


def test_a_rollout_is_yielded_while_others_are_still_decoded(engine, rollouts):
    (request,) = prompts(5)
    long = next(r for r in rollouts if r.problem_id == "p0" and len(r.response_tokens) == 12)
    almost = dataclasses.replace(long, response_tokens=long.response_tokens[:11])
    before = engine.counters.sequences
    stream = engine.generate([*prompts(2, 9)[1:], later(request, almost)], SAMPLING)

    assert "p0" == next(stream).problem_id
    assert 1 == engine.counters.sequences - before
    assert 3 == len(list(stream))


def test_a_stream_that_nobody_reads_to_its_end_disturbs_nothing(engine, rollouts):
    stream = engine.generate(prompts(5, 9, 2), SAMPLING)
    next(stream)
    stream.close()

    assert by_key(rollouts) == by_key(engine.generate(prompts(5, 9, 2), SAMPLING))


def test_a_response_goes_on_with_the_log_probs_and_routes_of_the_whole(engine, trainer):
    """Which tokens follow may depend on where it was cut; see test_rollout_hf for where not."""
    cut = dataclasses.replace(SAMPLING, segment_tokens=5)
    (request,) = prompts(5)
    parts = [r for r in engine.generate([request], cut) if r.stop_reason is StopReason.SEGMENT]
    assert parts
    for first in parts:
        rest = [later(request, first)]
        (second,), (again,) = engine.generate(rest, SAMPLING), engine.generate(rest, SAMPLING)
        whole = np.concatenate(
            [request.prompt_tokens, first.response_tokens, second.response_tokens]
        )
        expected = model_logprobs(trainer, whole)

        assert second.response_tokens.tolist() == again.response_tokens.tolist()
        assert 5 == len(first.response_tokens)
        assert 5 + 5 - 1 == len(first.trace.experts_TLK)
        assert expected[4:9] == pytest.approx(first.logprobs.tolist(), abs=1e-4)
        assert expected[9:] == pytest.approx(second.logprobs.tolist(), abs=1e-4)
        assert len(whole) - 1 == len(second.trace.experts_TLK)
        assert np.array_equal(first.trace.experts_TLK, second.trace.experts_TLK[:9])
        if second.stop_reason is StopReason.LENGTH:
            assert 12 == len(first.response_tokens) + len(second.response_tokens)


def test_a_response_that_is_complete_cannot_go_on(engine):
    (request,) = prompts(5)
    done = dataclasses.replace(request, response_tokens=np.zeros(12, dtype=np.int32))

    with pytest.raises(DataError, match="p0 already has 12 of 12 response tokens"):
        list(engine.generate([done], SAMPLING))
    with pytest.raises(DataError, match="p0 has no prompt token"):
        list(engine.generate(prompts(0), SAMPLING))


def test_a_prompt_that_leaves_no_room_for_its_response_is_refused_by_name(engine):
    with pytest.raises(SettingsError, match=r"p0: a prompt of 5 tokens .* curation.max_prompt_to"):
        list(engine.generate(prompts(5), dataclasses.replace(SAMPLING, max_new_tokens=10**6)))


def test_counters_are_the_sums_over_the_rollouts(engine):
    before = engine.counters
    found = list(engine.generate(prompts(5, 9, 2), SAMPLING))
    after = engine.counters

    assert len(found) == after.sequences - before.sequences
    assert sum(len(r.response_tokens) for r in found) == (
        after.generated_tokens - before.generated_tokens
    )
    assert 5 + 9 + 2 == after.prompt_tokens - before.prompt_tokens
    assert after.decode_seconds > before.decode_seconds
    assert after.prefill_seconds > before.prefill_seconds


def test_no_requests_give_no_rollouts(engine):
    assert [] == list(engine.generate([], SAMPLING))
    assert [] == engine.score_logprobs([])


def test_score_logprobs_agrees_with_the_trainer_on_the_same_weights(engine, trainer):
    sequences = [request.prompt_tokens for request in prompts(7, 1, 20)]
    for tokens, found in zip(sequences, engine.score_logprobs(sequences), strict=True):
        assert model_logprobs(trainer, tokens) == pytest.approx(found.tolist(), abs=1e-4)


def test_an_engine_that_slept_goes_on_after_a_weight_sync(engine, rollouts, trainer):
    engine.sleep()
    engine.load_weights(trainer.weights(), engine.policy_version)

    assert by_key(rollouts) == by_key(engine.generate(prompts(5, 9, 2), SAMPLING))


@pytest.mark.parametrize("precision", [Precision.BF16, Precision.FP16])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_half_precision_is_another_numeric_of_the_same_weights(
    kind, precision, trainer, served_moe
):
    half = open_engine(kind, served_moe, precision)
    tokens = [request.prompt_tokens for request in prompts(30)]

    assert weight_digest(trainer.weights()) == half.load_weights(trainer.weights(), 1)
    gap = np.abs(half.score_logprobs(tokens)[0] - model_logprobs(trainer, tokens[0]))
    assert 0.0 < gap.max() < 0.5
    assert 3 == len(list(half.generate(prompts(4), SAMPLING)))
    half.close()
