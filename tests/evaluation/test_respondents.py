"""Who answers: an engine is asked for gaps only, an endpoint in chat turns."""

import json
from contextlib import closing

import pytest

from data_schemas.settings import EvaluationSettings
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.errors import EngineError
from tasks.evaluation.respondents import Checkpoint, ServedModel, chat_sampling
from tasks.gym.judging.chat_client import ChatClient
from tasks.gym.judging.endpoint import ApiKey
from tests.chat_endpoint import NOBODY, endpoint, send

SETTINGS = EvaluationSettings(samples=4, max_new_tokens=16, temperature=0.5)


def endpoint_at(address, timeout_s=20.0):
    client = ChatClient(
        *(address, "served", chat_sampling(SETTINGS)),
        key=ApiKey("KEY"),
        timeout_s=timeout_s,
        max_concurrent=2,
        first_pause_s=0.01,
    )
    return closing(client), ServedModel(client, SETTINGS)


def test_a_checkpoint_generates_the_samples_that_are_asked_and_no_others(tokenizer, make_problem):
    problems = {name: make_problem(name) for name in "ab"}
    asked = [("a", 0), ("a", 2), ("a", 3), ("b", 1)]
    engine = ScriptedRolloutEngine(tokenizer, lambda prompt, sample: str(sample))

    answers = list(Checkpoint(engine, tokenizer, SETTINGS).answer(problems, asked))

    assert asked == sorted(answer.key for answer in answers)
    assert all(answer.surprisal_nats is not None for answer in answers)


def test_every_sample_of_an_endpoint_has_a_seed_of_its_own(make_problem):
    seeds = []

    def behave(handler, asked, _):
        seeds.append(asked["seed"])
        body = {"choices": [{"message": {"content": "7"}, "finish_reason": "length"}]}
        send(handler, json.dumps(body).encode())

    asked = [("a", 0), ("a", 1), ("b", 0)]
    with endpoint(behave) as address:
        closes, respondent = endpoint_at(address)
        with closes:
            answers = list(respondent.answer({n: make_problem(n) for n in "ab"}, asked))

    assert asked == sorted(answer.key for answer in answers)
    assert 3 == len(set(seeds))
    assert {("7", True, None, "")} == {
        (one.content, one.truncated, one.surprisal_nats, one.failure) for one in answers
    }


def test_an_endpoint_that_is_down_stops_the_evaluation_and_says_how_to_go_on(make_problem):
    asked = [("a", sample) for sample in range(8)]
    closes, respondent = endpoint_at(NOBODY, timeout_s=0.05)
    answers = respondent.answer({"a": make_problem("a")}, asked)
    with closes, pytest.raises(EngineError, match="start the same command again"):
        assert {"no_reply"} == {one.failure for one in answers}
