"""The scripted engine keeps the promises of a rollout engine."""

import dataclasses

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import StopReason
from data_schemas.rows import Message, Role
from tasks.engines.chat import render_prompt, response_text
from tasks.engines.protocols import Request, Sampling
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.training.foundation.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return train_tokenizer(["How much?"], 300, 512)


def request(tokenizer: PreTrainedTokenizerBase, key: str, text: str, samples: int) -> Request:
    prompt = render_prompt(tokenizer, (Message(role=Role.USER, content=text),))
    return Request(key, prompt, samples)


def test_every_request_comes_back_as_often_as_asked_with_the_scripts_words(
    tokenizer: PreTrainedTokenizerBase,
):
    engine = ScriptedRolloutEngine(tokenizer, lambda prompt, sample: f"{'2+2' in prompt} {sample}")
    requests = [request(tokenizer, "a", "2+2", 2), request(tokenizer, "b", "3+3", 1)]

    rollouts = list(engine.generate(requests, Sampling(20, 1.0, 0)))

    assert [("a", 0, "True 0"), ("a", 1, "True 1"), ("b", 0, "False 0")] == [
        (r.problem_id, r.sample, response_text(tokenizer, r.response_tokens.tolist()))
        for r in rollouts
    ]
    assert all(r.stop_reason is StopReason.END for r in rollouts)
    assert all(len(r.logprobs) == len(r.response_tokens) for r in rollouts)


def test_a_long_answer_is_cut_and_has_no_end_token(tokenizer: PreTrainedTokenizerBase):
    engine = ScriptedRolloutEngine(tokenizer, lambda _prompt, _sample: "123")

    cut, exact = (
        next(engine.generate([request(tokenizer, "a", "How", 1)], Sampling(limit, 1.0, 0)))
        for limit in (3, 4)
    )

    assert (StopReason.LENGTH, StopReason.END) == (cut.stop_reason, exact.stop_reason)
    assert tokenizer.eos_token_id not in cut.response_tokens
    assert tokenizer.eos_token_id == exact.response_tokens[-1]


def test_new_weights_raise_the_version_of_later_rollouts(tokenizer: PreTrainedTokenizerBase):
    engine = ScriptedRolloutEngine(tokenizer, lambda _prompt, _sample: "1", version=3)
    assert 3 == engine.policy_version

    digest = engine.load_weights(iter([("w", torch.zeros(2))]), 4)

    (rollout,) = engine.generate([request(tokenizer, "a", "How", 1)], Sampling(4, 1.0, 0))
    assert 4 == rollout.policy_version
    assert digest != engine.load_weights(iter([("w", torch.ones(2))]), 5)


def test_an_answer_comes_in_parts_and_is_counted(tokenizer: PreTrainedTokenizerBase):
    engine = ScriptedRolloutEngine(tokenizer, lambda _prompt, _sample: "12345")
    start = request(tokenizer, "a", "How", 1)
    (first,) = engine.generate([start], Sampling(9, 1.0, 0, segment_tokens=4))
    rest = dataclasses.replace(start, response_tokens=first.response_tokens)
    (second,) = engine.generate([rest], Sampling(9, 1.0, 0, segment_tokens=4))

    assert (StopReason.SEGMENT, StopReason.END) == (first.stop_reason, second.stop_reason)
    joined = [*first.response_tokens.tolist(), *second.response_tokens.tolist()]
    assert "12345" == response_text(tokenizer, joined)
    assert (2, 6) == (engine.counters.sequences, engine.counters.generated_tokens)
    assert 2 * len(start.prompt_tokens) + 4 == engine.counters.prompt_tokens
    assert [0.0, 0.0] == engine.score_logprobs([np.arange(3, dtype=np.int32)])[0].tolist()


def test_an_answer_ends_behind_its_stop_string(tokenizer: PreTrainedTokenizerBase):
    engine = ScriptedRolloutEngine(tokenizer, lambda _prompt, _sample: "one, two, three")
    prompt = [request(tokenizer, "a", "How", 1)]

    (cut,) = engine.generate(prompt, Sampling(99, 1.0, 0, stop=("two", "three")))
    (whole,) = engine.generate(prompt, Sampling(99, 1.0, 0, stop=("four",)))

    assert (StopReason.STOP, StopReason.END) == (cut.stop_reason, whole.stop_reason)
    assert response_text(tokenizer, cut.response_tokens.tolist()).endswith("two")
