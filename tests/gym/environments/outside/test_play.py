import os
from pathlib import Path

import numpy as np
import pytest

from data_schemas.rl_settings import RewardSettings
from data_schemas.rollouts import ScoringRequest, split_turns
from tasks.engines import episodes
from tasks.engines.chat import render_prompt
from tasks.engines.protocols import Request, Sampling
from tasks.engines.scoring import open_scoring
from tasks.errors import SettingsError
from tasks.gym.environments.outside import play, process
from tasks.gym.protocol import TURN_CUT, join_turns
from tasks.training.foundation.base import shipped_base
from tests.gym.environments.conftest import Speaker
from tests.gym.environments.outside.conftest import problem_of

TROUBLE = Path(__file__).with_name("trouble.py")


@pytest.fixture
def trouble(interpreter):
    """A problem whose environment does what a turn says."""
    interpreter("verifiers", TROUBLE)
    return problem_of(library="verifiers")


def heard(problem, *turns):
    found = play.observe(problem, turns)
    return None if found is None else [message.content for message in found]


def verdict(problem, *turns):
    found = play.verify(problem, join_turns(turns))
    return found.score, found.reason


def test_an_environment_answers_turns_and_its_reward_is_the_score():
    problem = problem_of(13)

    assert ["higher"] == heard(problem, "10")
    assert ["lower"] == heard(problem, "10", "<think>more</think>15")
    assert heard(problem, "10", "15", "13") is None
    assert (1.0, "correct") == verdict(problem, "10", "15", "13")
    assert (0.0, "unfinished") == verdict(problem, "10", "15")
    assert (0.0, "wrong") == verdict(problem, *["1"] * 8)
    assert (0.5, "partial") == verdict(problem_of(13, highest=2.0), "13")


def test_tokens_of_an_environment_are_masked_and_no_token_is_made_twice(tokenizer):
    problem, turns = problem_of(13), ("10", "15", "13")
    speaker = Speaker(tokenizer, turns)
    request = Request(problem.id, render_prompt(tokenizer, problem.messages), 1)

    (episode,) = episodes.generate(
        speaker, tokenizer, {problem.id: problem}, [request], Sampling(400, 1.0, seed=0)
    )

    tokens = episode.response_tokens
    said = [tokenizer.decode(turn) for turn in split_turns(tokens, episode.sampled)]
    assert [f"{turn}<|im_end|>" for turn in turns] == said
    for requests in speaker.calls:
        continued = requests[0].response_tokens
        assert tokens[: len(continued)].tolist() == continued.tolist()
    assert "higher" in tokenizer.decode(tokens[~episode.sampled])
    with open_scoring(None, RewardSettings(), num_workers=1) as service:
        (found,) = service.score([problem], [episodes.text_of(tokenizer, episode)])
    assert found.solved


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ("raise", "environment_raised"),
        ("flood", "environment_flooded"),
        ("long", "environment_flooded"),
        ("malformed", "environment_raised"),
        ("die", "environment_died"),
        ("great", "reward_out_of_range"),
        ("silent", "reward_out_of_range"),
    ],
)
def test_an_environment_that_fails_is_an_abstention(trouble, turn, reason):
    assert ["heard hello None"] == heard(trouble, "hello")

    assert heard(trouble, "hello", turn) is None
    assert (None, reason) == verdict(trouble, "hello", turn)
    assert ["heard again None"] == heard(trouble, "hello", "again")


@pytest.mark.parametrize(("cut", "score"), [(False, 1.0), (True, 0.25)])
def test_an_environment_hears_that_a_turn_was_cut(trouble, tokenizer, cut, score):
    (hello, ends) = (tokenizer("hello<|im_end|>")["input_ids"], tokenizer("ends")["input_ids"])
    last = ends if cut else [*ends, tokenizer.eos_token_id]
    tokens = np.array([*hello, 5, *last], dtype=np.int32)
    sampled = np.array([True] * len(hello) + [False] + [True] * len(last))
    item = ScoringRequest(trouble, "g", 0, 1, tokens, sampled)

    with open_scoring(shipped_base(), RewardSettings(), num_workers=1) as service:
        service.submit(item)
        (result,) = service.gather().values()

    assert score == result.verdict.score


def test_a_turn_cannot_say_that_it_was_cut(trouble):
    assert (1.0, "correct") == verdict(trouble, f"ends{TURN_CUT}")


def test_an_environment_that_hangs_is_killed_and_an_abstention(trouble, monkeypatch):
    (first,) = heard(trouble, "process")
    with monkeypatch.context() as changed:
        changed.setattr(process, "TIMEOUT_S", 0.1)

        assert heard(trouble, "process", "hang") is None

    assert (None, "environment_hung") == verdict(trouble, "process", "hang")
    with pytest.raises(ProcessLookupError):
        os.kill(int(first), 0)


def test_a_process_that_does_not_read_is_killed(monkeypatch):
    monkeypatch.setattr(process, "START_TIMEOUT_S", 0.2)
    monkeypatch.setattr(process, "TIMEOUT_S", 0.1)
    deaf = process.HostProcess(["sleep", "60"])

    with pytest.raises(process.EnvironmentFailure, match="environment_hung"):
        deaf.ask({"offer": "x" * 2**20})


@pytest.mark.parametrize("reply", ["7", "[]", "null"])
def test_a_reply_that_is_no_object_is_an_error_of_the_environment(reply):
    host = process.HostProcess(["sh", "-c", f"while read line; do echo '{reply}'; done"])

    with pytest.raises(process.EnvironmentFailure, match="the reply is no object"):
        host.ask({})
    host.close()


def test_what_an_environment_prints_is_no_answer(trouble):
    assert ["printed"] == heard(trouble, "print")


def test_an_environment_does_not_see_our_variables(trouble, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    (names,) = heard(trouble, "variables")

    assert {"AWS_SECRET_ACCESS_KEY", play.VARIABLE}.isdisjoint(names.split())


def test_calls_reach_an_environment_parsed(trouble):
    call = '{"name": "stock", "parameters": {"item": "mug"}}'

    (said,) = heard(trouble, call)

    assert said.endswith("[{'name': 'stock', 'parameters': {'item': 'mug'}}]")


def test_random_answers_do_not_depend_on_other_episodes_or_on_a_restart(trouble):
    first = heard(trouble, "dice"), heard(trouble, "dice", "dice")
    other = problem_of(4, library="verifiers")
    play.close()

    heard(other, "dice")
    second = heard(trouble, "dice")
    heard(other, "dice", "dice")
    assert first == (second, heard(trouble, "dice", "dice"))
    assert first[0] != heard(other, "dice")


def test_other_answers_to_the_same_turns_are_noticed(trouble):
    """A process id is another one after a restart."""
    assert ["heard hello None"] == heard(trouble, "hello")
    heard(trouble, "process")
    heard(trouble, "die")

    assert heard(trouble, "process", "hello") is None
    assert (None, "not_deterministic") == verdict(trouble, "process", "hello")


def test_another_version_of_an_environment_is_not_played():
    assert (None, "environment_raised") == verdict(problem_of(version="2"), "3")


def test_an_interpreter_that_is_not_named_is_asked_for(monkeypatch):
    monkeypatch.delenv(play.VARIABLE, raising=False)

    with pytest.raises(
        SettingsError, match=r"EACHPROMPT_ENVIRONMENTS does not say verifiers=PLACE"
    ):
        play.observe(problem_of(library="verifiers"), ["3"])
    with pytest.raises(SettingsError, match=r"'gym' is not one of example, shopping, bfcl"):
        play.verify(problem_of(library="gym"), "3")


def test_an_interpreter_may_be_named_from_where_the_pipeline_runs(trouble, monkeypatch):
    program = Path(os.environ[play.VARIABLE].partition("=")[2])
    monkeypatch.chdir(program.parent)

    for place in (f"./{program.name}", f"../{program.parent.name}/{program.name}"):
        play.close()
        monkeypatch.setenv(play.VARIABLE, f"verifiers={place}")
        assert ["heard x None"] == heard(trouble, "x")


def test_an_interpreter_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv(play.VARIABLE, "verifiers=/nowhere/python")

    with pytest.raises(SettingsError, match="verifiers=/nowhere/python, which is no program here"):
        play.observe(problem_of(library="verifiers"), ["x"])


def test_an_offer_may_be_long(trouble, monkeypatch):
    monkeypatch.setattr(process, "MAX_REPLY_BYTES", 1000)

    _, tasks = play.offer("verifiers", "guess", {}, {"limit": 500})
    assert 500 == len(tasks)

    monkeypatch.setattr(process, "MAX_TURN_BYTES", 1)
    with pytest.raises(process.EnvironmentFailure, match="over 1000 bytes"):
        play.offer("verifiers", "guess", {}, {"limit": 500})


def test_a_task_of_harbor_is_refused_for_its_image():
    with pytest.raises(SettingsError, match=r"'harbor' is not played: .* container image"):
        play.offer("harbor", "tasks/hello-world", {}, {"limit": 1})


def test_an_unreadable_gold_is_an_abstention():
    problem = problem_of().model_copy(update={"answer": "{}"})

    assert (None, "bad_gold") == verdict(problem, "3")
    assert play.observe(problem, ["3"]) is None
