"""The reward functions for other trainers, against an endpoint, with the arguments those pass."""

import asyncio
import sys
from dataclasses import dataclass, field
from urllib.error import HTTPError

import pytest

from data_schemas.rl_settings import RewardSettings
from tasks.engines.scoring import open_scoring
from tasks.gym.serving import client
from tasks.gym.serving.endpoint import RequestLimits, open_endpoint
from tests.processes import run_process, serving

GOLD = '{"correct": ["a bag"]}'
BROKEN = '{"correct": []}'
EXPECTED = {("a bag", GOLD): 1.0, ("a shoe", GOLD): 0.0, ("a bag", BROKEN): None}


@pytest.fixture(scope="module")
def address():
    with (
        open_scoring(None, RewardSettings(), num_workers=1) as scorer,
        open_endpoint(scorer, [], "127.0.0.1", 0, RequestLimits(token="secret")) as server,
        serving(server),
    ):
        yield f"http://127.0.0.1:{server.server_address[1]}"


@pytest.fixture(autouse=True)
def environment(address, monkeypatch):
    monkeypatch.setenv(client.ADDRESS, address)
    monkeypatch.setenv(client.TOKEN, "secret")


@dataclass
class Sample:
    """What slime's function reads of a sample, and what it writes."""

    response: str
    label: str
    metadata: dict = field(default_factory=lambda: {"verifier": "choice"})
    remove_sample: bool = False


def test_verl_gets_the_scores_and_an_abstention_is_0_and_says_so():
    found = [
        asyncio.run(
            client.compute_score(
                data_source="set",
                solution_str=text,
                ground_truth=gold,
                extra_info={"verifier": "choice", "num_turns": None, "rollout_reward_scores": {}},
            )
        )
        for text, gold in EXPECTED
    ]

    assert [(1.0, 0.0), (0.0, 0.0), (0.0, 1.0)] == [(f["score"], f["abstained"]) for f in found]


def test_verl_may_name_the_verifier_as_the_data_source():
    found = asyncio.run(client.compute_score("choice", "a bag", {"correct": ["a bag"]}))

    assert 1.0 == found["score"]


def test_trl_gets_a_score_or_none_for_texts_and_for_messages():
    texts, golds = [text for text, _ in EXPECTED], [gold for _, gold in EXPECTED]
    turns = [[{"role": "assistant", "content": text}] for text in texts]
    for completions in (texts, turns):
        found = client.reward(
            prompts=["?"] * 3,
            completions=completions,
            completion_ids=[[1]] * 3,
            verifier=["choice"] * 3,
            answer=golds,
            trainer_state=None,
        )

        assert list(EXPECTED.values()) == found


def test_slime_gets_one_reward_or_a_group_and_abstentions_are_removed():
    group = [Sample(text, gold) for text, gold in EXPECTED]

    assert [1.0, 0.0, 0.0] == asyncio.run(client.custom_rm(None, group, evaluation=False))
    assert [False, False, True] == [sample.remove_sample for sample in group]
    assert 1.0 == asyncio.run(client.custom_rm(None, group[0]))


def test_rows_that_the_endpoint_refuses_are_an_error_not_a_score(monkeypatch):
    with pytest.raises(HTTPError, match="422"):
        client.score([{"verifier": "nobody", "answer": GOLD, "response": "a bag"}])
    monkeypatch.delenv(client.TOKEN)
    with pytest.raises(HTTPError, match="401"):
        client.score([])


def test_a_trainer_loads_the_file_by_its_path_without_this_project():
    load = (
        "import importlib.util as u, sys; s = u.spec_from_file_location('rewards', sys.argv[1]); "
        "m = u.module_from_spec(s); s.loader.exec_module(m); print(m.compute_score.__name__)"
    )
    ended = run_process(
        [sys.executable, "-I", "-S", "-c", load, client.__file__], timeout=60, check=False
    )

    assert ("compute_score\n", "") == (ended.stdout, ended.stderr)
