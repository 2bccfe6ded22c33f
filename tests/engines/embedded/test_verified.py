"""Exact rollouts: drafts change what a response costs and no byte of it."""

import dataclasses

import numpy as np
import pytest
import torch

from data_schemas.machine_settings import Precision
from data_schemas.rollouts import StopReason
from tasks.algorithms.kept_sets import check_kept
from tasks.engines.chat import end_and_pad, load_tokenizer
from tasks.engines.embedded.hf_model import load_on_device
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.rollout_forward import DecoderForward
from tasks.engines.embedded.slots import Seat
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.embedded.verified import BLOCK, DraftVerifier
from tasks.engines.protocols import Request, Sampling
from tasks.engines.stop_strings import StopStrings
from tasks.errors import SettingsError

PLAIN = Sampling(max_new_tokens=24, temperature=1.0, seed=3, exact=True)
SAMPLINGS = {
    "plain": {},
    "hot, top-p and min-p": {"temperature": 1.5, "top_p": 0.9, "min_p": 0.01},
    "top-p and top-k with their sets": {"top_p": 0.9, "top_k": 12, "record_kept": True},
    "stop strings": {"stop": ("e", "th")},
    "greedy": {"temperature": 0.0},
}
LENGTHS = (3, BLOCK - 1, BLOCK, BLOCK + 9)


def prompts(*lengths, num_samples=2):
    generator = np.random.default_rng(0)
    return [
        Request(f"p{place}", generator.integers(3, 250, length).astype(np.int32), num_samples)
        for place, length in enumerate(lengths)
    ]


def by_key(rollouts):
    return {(rollout.problem_id, rollout.sample): rollout for rollout in rollouts}


def bytes_of(rollouts):
    return {
        key: (
            rollout.response_tokens.tobytes(),
            rollout.logprobs.tobytes(),
            rollout.trace and rollout.trace.experts_TLK.tobytes(),
            rollout.kept and (rollout.kept.ids.tobytes(), rollout.kept.counts.tolist()),
            rollout.stop_reason,
        )
        for key, rollout in by_key(rollouts).items()
    }


def with_drafts(requests, make):
    return [
        dataclasses.replace(
            request,
            drafts=tuple(make(request.problem_id, n) for n in range(request.num_samples)),
        )
        for request in requests
    ]


@pytest.fixture(scope="module")
def engine(tiny_moe):
    """Its weights are a little off those of `older`."""
    engine, trainer = HFRolloutEngine(tiny_moe), TorchTrainer(tiny_moe)
    torch.manual_seed(1)
    with torch.no_grad():
        weights = {name: t + 0.002 * torch.randn(t.shape) for name, t in trainer.weights()}
    engine.load_weights(iter(weights.items()), version=1)
    return engine


@pytest.fixture(scope="module")
def older(tiny_moe):
    return HFRolloutEngine(tiny_moe)


@pytest.mark.slow
@pytest.mark.parametrize("changes", SAMPLINGS.values(), ids=SAMPLINGS)
def test_an_older_policys_responses_change_no_byte(engine, older, changes):
    sampling, requests = dataclasses.replace(PLAIN, **changes), prompts(*LENGTHS)
    earlier = by_key(older.generate(requests, sampling))
    anew = list(engine.generate(requests, sampling))
    drafted = with_drafts(requests, lambda name, sample: earlier[name, sample].response_tokens)

    found = list(engine.generate(drafted, sampling))

    assert bytes_of(anew) == bytes_of(found)
    assert 0 == sum(rollout.reused for rollout in anew)
    assert 0 < sum(rollout.reused for rollout in found)
    for key, rollout in by_key(found).items():
        if sampling.record_kept:
            check_kept(rollout.kept, rollout.response_tokens, None)
        kept = rollout.response_tokens[: rollout.reused]
        assert kept.tolist() == earlier[key].response_tokens[: rollout.reused].tolist()


DAMAGED = {
    "none": lambda tokens: tokens[:0],
    "of unknown tokens": lambda tokens: tokens + 100_000,
    "of negative tokens": lambda tokens: tokens - 100_000,
    "backwards": lambda tokens: tokens[::-1],
    "with one wrong token": lambda tokens: np.where(np.arange(len(tokens)) == 1, 7, tokens),
    "cut": lambda tokens: tokens[:3],
    "going on after its end": lambda tokens: np.concatenate([tokens, tokens, tokens]),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_draft_changes_no_byte(engine, damage):
    requests, short = prompts(9, BLOCK), dataclasses.replace(PLAIN, max_new_tokens=12)
    anew = list(engine.generate(requests, short))
    whole = by_key(anew)
    drafted = with_drafts(requests, lambda *key: damage(whole[key].response_tokens))

    assert bytes_of(anew) == bytes_of(engine.generate(drafted, short))


def test_the_own_response_is_reused_whole_and_nothing_is_generated(engine):
    requests = prompts(*LENGTHS)
    whole = by_key(engine.generate(requests, PLAIN))
    drafted = with_drafts(requests, lambda *key: whole[key].response_tokens)
    before = engine.counters

    found = list(engine.generate(drafted, PLAIN))

    after = engine.counters
    tokens = sum(len(rollout.response_tokens) for rollout in found)
    assert tokens == sum(rollout.reused for rollout in found)
    assert before.generated_tokens == after.generated_tokens
    assert before.decode_seconds == after.decode_seconds
    assert before.reused_tokens + tokens == after.reused_tokens
    # Every sequence is fed whole, but for its last token where nothing follows it in the pass.
    fed = sum(len(r.prompt_tokens) + len(r.response_tokens) for r in found)
    assert fed - len(found) <= after.verified_tokens - before.verified_tokens <= fed


@pytest.mark.parametrize("slots", [1, 3])
def test_neither_slots_nor_company_change_a_byte(tiny_moe, older, slots):
    requests = prompts(4, BLOCK - 2, 20)
    together = bytes_of(older.generate(requests, PLAIN))
    narrow = HFRolloutEngine(tiny_moe, slots=slots)
    (alone,) = narrow.generate([dataclasses.replace(requests[1], num_samples=1)], PLAIN)

    assert together == bytes_of(narrow.generate(requests[::-1], PLAIN))
    assert together["p1", 0] == bytes_of([alone])["p1", 0]


@pytest.mark.parametrize("precision", [Precision.BF16, Precision.FP16])
def test_it_holds_in_coarse_precisions_where_decoding_rounds_differently(tiny_moe, precision):
    engine, requests = HFRolloutEngine(tiny_moe, precision=precision), prompts(5, 40)
    anew = list(engine.generate(requests, PLAIN))
    guesses = by_key(engine.generate(requests, dataclasses.replace(PLAIN, exact=False)))
    drafted = with_drafts(requests, lambda *key: guesses[key].response_tokens)

    assert bytes_of(anew) == bytes_of(engine.generate(drafted, PLAIN))


def test_a_dense_model_reuses_too(tiny_dense):
    engine, requests = HFRolloutEngine(tiny_dense), prompts(5)
    anew = list(engine.generate(requests, PLAIN))
    whole = by_key(anew)
    drafted = with_drafts(requests, lambda *key: whole[key].response_tokens[:9])

    assert bytes_of(anew) == bytes_of(engine.generate(drafted, PLAIN))


def test_exact_rollouts_are_those_of_decoding_but_for_rounding(older):
    requests = prompts(*LENGTHS)
    decoded = by_key(older.generate(requests, dataclasses.replace(PLAIN, exact=False)))

    for key, rollout in by_key(older.generate(requests, PLAIN)).items():
        assert decoded[key].response_tokens.tolist() == rollout.response_tokens.tolist()
        assert decoded[key].logprobs == pytest.approx(rollout.logprobs, abs=1e-4)
        assert np.array_equal(
            np.sort(decoded[key].trace.experts_TLK), np.sort(rollout.trace.experts_TLK)
        )


def test_a_later_turn_takes_the_draft_that_begins_with_the_earlier_ones(older):
    (request,) = prompts(9, num_samples=1)
    turn = dataclasses.replace(request, response_tokens=np.array([5, 9, 11], np.int32))
    (anew,) = older.generate([turn], PLAIN)
    whole = np.concatenate([turn.response_tokens, anew.response_tokens])
    other = np.concatenate([turn.response_tokens + 1, anew.response_tokens])

    for draft, reused in ((whole, len(anew.response_tokens)), (other, 0)):
        (found,) = older.generate([dataclasses.replace(turn, drafts=(draft,))], PLAIN)
        assert bytes_of([anew]) == bytes_of([found])
        assert reused == found.reused


def test_requests_with_the_same_stream_draw_with_the_same_numbers(older):
    (request,) = prompts(9)
    other = dataclasses.replace(request, problem_id="other", stream="p0")
    unrelated = dataclasses.replace(request, problem_id="unrelated")
    for exact in (False, True):
        sampling = dataclasses.replace(PLAIN, exact=exact)
        found = by_key(older.generate([request, other, unrelated], sampling))
        for sample in range(2):
            same, asked, different = (
                found[name, sample].response_tokens.tolist()
                for name in ("p0", "other", "unrelated")
            )
            assert same == asked != different


def test_a_decoder_that_guesses_wrong_costs_more_and_changes_no_byte(tiny_moe, older):
    """As where decoding in a batch rounds a tie to another token than the pass alone."""
    short = dataclasses.replace(PLAIN, max_new_tokens=12)
    requests = [dataclasses.replace(one, num_samples=1) for one in prompts(5, BLOCK - 3)]
    seats = [Seat(number, request, 0) for number, request in enumerate(requests)]
    tokenizer = load_tokenizer(tiny_moe)
    end, _ = end_and_pad(tokenizer)
    calls = []

    def wrong(asked, sampling):
        calls.append(len(asked))
        for rollout in older.generate(asked, sampling):
            tokens = rollout.response_tokens.copy()
            tokens[2::3] = (tokens[2::3] + 1) % 200
            yield dataclasses.replace(rollout, response_tokens=tokens)

    with torch.inference_mode():
        verifier = DraftVerifier(
            DecoderForward(load_on_device(tiny_moe, dtype=torch.float32)),
            wrong,
            end,
            StopStrings(tokenizer, ()),
            short,
            room=10**6,
        )
        found = bytes_of(verifier.generate(seats, 0))

    assert bytes_of(older.generate(requests, short)) == found
    assert len(calls) > 2


def test_the_bits_of_a_token_depend_on_no_later_token(tiny_moe):
    """The condition on which reuse rests, on this machine and this model."""
    generator = torch.Generator().manual_seed(0)
    with torch.inference_mode():
        forward = DecoderForward(load_on_device(tiny_moe, dtype=torch.float32))
        first = torch.randint(0, 250, (BLOCK,), generator=generator)
        _, _, *cache = forward.block(first, *forward.no_tokens())
        for same in (1, 7, 33, BLOCK):
            for known in (forward.no_tokens(), cache):
                others = torch.randint(0, 250, (2, BLOCK), generator=generator)
                others[:, :same] = others[0, :same]
                one, two = (forward.block(tokens, *known) for tokens in others)

                assert torch.equal(one[0][:same], two[0][:same])
                assert torch.equal(one[1][:same], two[1][:same])


def test_a_response_in_segments_is_refused_by_name():
    with pytest.raises(SettingsError, match=r"engines\.segment_tokens to 0"):
        Sampling(8, 1.0, seed=0, exact=True, segment_tokens=4)


def test_a_reused_response_keeps_its_reason_to_stop(older):
    requests = prompts(*[4] * 12)
    hot = dataclasses.replace(PLAIN, temperature=2.0)
    whole = by_key(older.generate(requests, hot))
    drafted = with_drafts(requests, lambda *key: whole[key].response_tokens)
    reasons = {rollout.stop_reason for rollout in older.generate(drafted, hot)}

    assert {StopReason.END, StopReason.LENGTH} == reasons
