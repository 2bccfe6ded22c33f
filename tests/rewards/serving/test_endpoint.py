"""The HTTP endpoint: the verdicts of the service behind it, and errors as JSON."""

import json
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import hostile
import pytest

from data_schemas.rl_settings import RewardSettings
from tasks.errors import SettingsError
from tasks.rewards import table
from tasks.rewards.protocol import JUDGED, Entry
from tasks.rewards.scoring.canaries import CANARIES
from tasks.rewards.scoring.service import ScoringService
from tasks.rewards.serving.endpoint import MAX_ROWS, Limits, open_endpoint


@contextmanager
def served(scorer, limits):
    with open_endpoint(scorer, ["choice"], "127.0.0.1", 0, limits) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def call(address, path, body=None, **headers):
    asked = urllib.request.Request(f"{address}{path}", data=body, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def rows(*pairs):
    return json.dumps({"rows": pairs}).encode()


@pytest.fixture(scope="module")
def scorer():
    entries = {**table.entries(RewardSettings()), "slow": Entry(hostile.slow)}
    with ScoringService(None, RewardSettings(), num_workers=1, entries=entries) as service:
        yield service


@pytest.fixture(scope="module")
def address(scorer):
    with served(scorer, Limits()) as found:
        yield found


def test_verdicts_over_http_are_those_of_this_process_for_every_verifier(problem, address):
    canaries = [canary for canary in CANARIES if canary.verifier not in JUDGED]
    pairs = [(c, text) for c in canaries for text in (c.right, c.wrong, "", "<think>")]
    here = table.score_batch([problem(c.verifier, c.gold) for c, _ in pairs], [t for _, t in pairs])
    asked = [{"verifier": c.verifier, "answer": c.gold, "response": text} for c, text in pairs]

    status, reply = call(address, "/v1/score", rows(*asked))

    assert 200 == status
    assert table.VERIFIERS.keys() - set(JUDGED) == {c.verifier for c, _ in pairs}
    assert [verdict.model_dump() for verdict in here] == reply["verdicts"]


ROW = {"verifier": "choice", "answer": {"correct": ["a bag"]}, "response": "a bag"}


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        (b"{", 422, "bad_request", "body: Invalid JSON"),
        (rows({**ROW, "gold": 1}), 422, "bad_request", "rows.0.gold: Extra inputs"),
        (rows({**ROW, "verifier": "nobody"}), 422, "bad_request", "'nobody' does not exist"),
        (rows({**ROW, "verifier": "rubric"}), 422, "bad_request", "needs a judge"),
        (rows(*[ROW] * (MAX_ROWS + 1)), 422, "bad_request", "rows: Tuple should have at most"),
        (b"x" * 2_000_000, 413, "too_large", "2000000 bytes, at most 1000000"),
    ],
)
def test_a_bad_request_is_reported_in_json(scorer, body, status, code, message):
    with served(scorer, Limits(body_bytes=1_000_000)) as found:
        got, reply = call(found, "/v1/score", body)

    assert (status, code) == (got, reply["error"]["code"])
    assert message in reply["error"]["message"]


def test_health_needs_no_token_and_scoring_does(scorer):
    with served(scorer, Limits(token="secret")) as found:
        assert (200, {"status": "ok", "verifiers": ["choice"]}) == call(found, "/health")
        for token in ("", "Bearer wrong", "secret"):
            assert 401 == call(found, "/v1/score", rows(ROW), Authorization=token)[0]
        status, reply = call(found, "/v1/score", rows(ROW), Authorization="Bearer secret")

    assert (200, 1.0) == (status, reply["verdicts"][0]["score"])


def test_another_path_is_not_found(address):
    assert (404, "not_found") == (
        (answer := call(address, "/v1/other"))[0],
        answer[1]["error"]["code"],
    )


def test_requests_beyond_the_limit_are_sent_away_and_the_others_are_answered(scorer):
    slow = rows({"verifier": "slow", "answer": {}, "response": "1500"})
    found = []
    with served(scorer, Limits(requests=1)) as place:
        threads = [
            threading.Thread(target=lambda: found.append(call(place, "/v1/score", slow)[0]))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [200, 503, 503] == sorted(found)


def test_an_address_that_others_can_reach_needs_a_token(scorer):
    with pytest.raises(SettingsError, match="can be reached from other machines and no token"):
        open_endpoint(scorer, [], "0.0.0.0", 0, Limits())


def test_a_taken_port_is_named(scorer, address):
    port = int(address.rpartition(":")[2])
    with pytest.raises(SettingsError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
        open_endpoint(scorer, [], "127.0.0.1", port, Limits())
