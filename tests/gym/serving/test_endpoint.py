"""The HTTP endpoint: the verdicts of the service behind it, and errors as JSON."""

import http.client
import itertools
import json
import re
import select
import socket
import string
import struct
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import hostile
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from data_schemas.rl_settings import RewardSettings
from tasks.errors import SettingsError
from tasks.gym import binding, table
from tasks.gym.protocol import Entry
from tasks.gym.scoring.canaries import CANARIES
from tasks.gym.scoring.service import ScoringService
from tasks.gym.serving.endpoint import MAX_ROWS, RequestLimits, Route, listen, open_endpoint
from tests.openapi_client import complaints
from tests.processes import serving
from tests.schema_values import NO_NULL, SLOW_DRAWS, near, values

NAMES = sorted(name for name, entry in table.ENTRIES.items() if not entry.needs_judge)
JSON_POST = b"POST /v1/score HTTP/1.1\r\nContent-Type: application/json\r\n"


@contextmanager
def served(scorer, limits):
    with open_endpoint(scorer, NAMES, "127.0.0.1", 0, limits) as server, serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


def call(address, path, body=None, **headers):
    headers = {"Content-Type": "application/json"} | headers
    asked = urllib.request.Request(f"{address}{path}", data=body, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@contextmanager
def opened(address):
    """Open a connection without sending anything."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        yield client


def answer(client):
    """Read a whole reply: its status and the code of its error."""
    reply = http.client.HTTPResponse(client)
    reply.begin()
    return refusal((reply.status, json.load(reply)))


def refusal(reply):
    return reply[0], reply[1]["error"]["code"]


def until(call, expected):
    """Call until the value is as expected, at most 30 s; return the last one."""
    deadline = time.monotonic() + 30
    while (found := call()) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def rows(*pairs):
    return json.dumps({"rows": pairs}).encode()


@pytest.fixture(scope="module")
def scorer():
    entries = table.listed_entries(binding.entries(RewardSettings()), ["environment"])
    entries = {**entries, "slow": Entry(hostile.slow)}
    with ScoringService(None, RewardSettings(), num_workers=1, entries=entries) as service:
        yield service


@pytest.fixture(scope="module")
def address(scorer):
    with served(scorer, RequestLimits()) as found:
        yield found


def test_verdicts_over_http_are_those_of_this_process_for_every_verifier(problem, address):
    canaries = [canary for canary in CANARIES if canary.verifier in NAMES]
    pairs = [(c, text) for c in canaries for text in (c.right, c.wrong, "", "<think>")]
    here = table.score_batch([problem(c.verifier, c.gold) for c, _ in pairs], [t for _, t in pairs])
    asked = [{"verifier": c.verifier, "answer": c.gold, "response": text} for c, text in pairs]

    status, reply = call(address, "/v1/score", rows(*asked))

    assert 200 == status
    assert {*NAMES} == {c.verifier for c, _ in pairs}
    assert [verdict.model_dump() for verdict in here] == reply["verdicts"]


HEAD = JSON_POST + b"Content-Length: %d\r\n\r\n"
ROW = {"verifier": "choice", "answer": {"correct": ["a bag"]}, "response": "a bag"}


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        (b"{", 422, "bad_request", "body: Invalid JSON"),
        (rows({**ROW, "verifier": "evil.py:f"}), 422, "bad_request", "has to be listed"),
        (rows({**ROW, "verifier": "antigravity:f"}), 422, "bad_request", "has to be listed"),
        (rows(ROW, {**ROW, "language": "?!"}), 422, "bad_request", "rows.1.language: "),
        (rows({**ROW, "gold": 1}), 422, "bad_request", "rows.0.gold: Extra inputs"),
        (rows({**ROW, "verifier": "nobody"}), 422, "bad_request", "'nobody' does not exist"),
        (rows({**ROW, "verifier": "rubric"}), 422, "bad_request", "needs a judge"),
        (rows(*[ROW] * (MAX_ROWS + 1)), 422, "bad_request", "rows: Tuple should have at most"),
        (b"x" * 20_000_000, 413, "too_large", "20000000 bytes, at most 1000000"),
    ],
)
def test_a_bad_request_is_reported_in_json(scorer, body, status, code, message):
    with served(scorer, RequestLimits(body_bytes=1_000_000)) as found:
        got, reply = call(found, "/v1/score", body)

    assert (status, code) == (got, reply["error"]["code"])
    assert message in reply["error"]["message"]


@pytest.mark.attack
def test_a_head_that_drips_is_cut_off_as_a_whole(scorer, monkeypatch):
    """Each byte comes in time; the head does not."""
    monkeypatch.setattr("tasks.gym.serving.endpoint.IDLE_S", 0.2)
    with served(scorer, RequestLimits()) as found, opened(found) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nX-Drip: ")

        assert b"" == client.recv(1)
    with served(scorer, RequestLimits()) as found:
        assert 200 == call(found, "/health")[0]


@pytest.mark.attack
@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Content-Type": "text/plain"}, 415, "not_json"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "not_json"),
        ({"Origin": "https://evil.example"}, 403, "foreign_origin"),
        ({"Origin": "null"}, 403, "foreign_origin"),
        ({"Host": "rebound.example:80"}, 403, "foreign_host"),
        ({"Host": "127.0.0.1.evil.example"}, 403, "foreign_host"),
        ({"Host": "evil.example@127.0.0.1"}, 403, "foreign_host"),
        ({"Host": "rebound.example", "Origin": "http://rebound.example"}, 403, "foreign_host"),
    ],
)
def test_a_page_of_another_site_is_not_answered(address, headers, status, code):
    assert (status, code) == refusal(call(address, "/v1/score", rows(ROW), **headers))


def test_a_page_of_this_host_and_a_charset_are_welcome(address):
    host = address.removeprefix("http://")
    for headers in (
        {"Origin": address},
        {"Host": f"localhost:{host.partition(':')[2]}"},
        {"Content-Type": "application/json; charset=utf-8"},
    ):
        assert 200 == call(address, "/v1/score", rows(ROW), **headers)[0]


def test_health_needs_no_token_and_scoring_does(scorer):
    with served(scorer, RequestLimits(token="secret")) as found:
        assert (200, {"status": "ok", "verifiers": NAMES}) == call(found, "/health")
        for token in ("", "Bearer wrong", "secret"):
            assert 401 == call(found, "/v1/score", rows(ROW), Authorization=token)[0]
        status, reply = call(found, "/v1/score", rows(ROW), Authorization="Bearer secret")

    assert (200, 1.0) == (status, reply["verdicts"][0]["score"])


def test_another_path_is_not_found(address):
    assert (404, "not_found") == (
        (answer := call(address, "/v1/other"))[0],
        answer[1]["error"]["code"],
    )


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "DELETE", "GET"])
def test_another_method_of_a_path_is_told_which_there_is(address, method):
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
    connection.request(method, "/v1/score")
    reply = connection.getresponse()

    assert (405, "POST") == (reply.status, reply.headers["Allow"])
    assert "method_not_allowed" == json.loads(reply.read())["error"]["code"]
    connection.close()


def test_a_head_is_answered_without_a_body(address):
    with opened(address) as client:
        client.sendall(b"HEAD /health HTTP/1.1\r\n\r\n")
        reply = b"".join(iter(lambda: client.recv(2**16), b""))

    assert reply.startswith(b"HTTP/1.1 405 ")
    assert reply.endswith(b"\r\n\r\n")


def test_requests_beyond_the_limit_wait_and_all_are_answered(scorer):
    slow = rows({"verifier": "slow", "answer": {}, "response": "200"})
    found = []
    with served(scorer, RequestLimits(requests=1)) as place:
        threads = [
            threading.Thread(target=lambda: found.append(call(place, "/v1/score", slow)[0]))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [200] * 3 == found


def test_connections_beyond_the_limit_are_refused_and_a_closed_one_makes_room(scorer):
    with served(scorer, RequestLimits(connections=1)) as place:
        with opened(place):
            # A busy server counts a connection after the system has opened it.
            assert 503 == until(lambda: call(place, "/health")[0], 503)
            assert (503, "service_unavailable") == refusal(call(place, "/health"))
        assert 200 == until(lambda: call(place, "/health")[0], 200)


def test_a_client_that_sends_slowly_is_refused_while_others_are_answered(scorer):
    with (
        served(scorer, RequestLimits(requests=1, body_s=0.5)) as place,
        opened(place) as slow,
        opened(place) as silent,
    ):
        slow.sendall(HEAD % 1000 + b"{")
        silent.sendall(b"POST /v1/score HT")
        assert 200 == call(place, "/v1/score", rows(ROW))[0]
        assert (408, "too_slow") == answer(slow)


def test_the_time_for_a_body_is_that_of_all_its_parts(scorer):
    with served(scorer, RequestLimits(body_s=0.5)) as place, opened(place) as slow:
        slow.sendall(HEAD % 100_000)
        for _ in range(600):
            if select.select([slow], [], [], 0.05)[0]:
                break
            slow.sendall(b" ")
        else:
            pytest.fail("each part had the time of the whole")


@pytest.mark.attack
def test_what_follows_an_unread_body_is_no_request(address):
    """A proxy and this server must agree on where a request ends, or one hides in another."""
    score = HEAD % len(rows(ROW)) + rows(ROW)
    hidden = b"GET /health HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(score), score)
    twice = JSON_POST + b"Content-Length: 2\r\nContent-Length: 200\r\n\r\n{}"
    both = JSON_POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"
    for request, status in ((hidden, b"200"), (twice, b"411"), (both, b"411")):
        with opened(address) as client:
            client.sendall(request)
            reply = b""
            while part := client.recv(2**16):
                reply += part

        assert reply.startswith(b"HTTP/1.1 " + status)
        assert 1 == reply.count(b"HTTP/1.1 ")


@pytest.mark.attack
def test_an_error_of_our_own_is_an_answer_and_goes_to_the_log(caplog):
    def fail(body):
        raise RuntimeError("secret of the server")

    routes = {("POST", "/v1/fail"): Route(fail)}
    with listen(routes, "127.0.0.1", 0, RequestLimits()) as server, serving(server):
        place = f"http://127.0.0.1:{server.server_address[1]}"
        status, reply = call(place, "/v1/fail", b"{}")

    assert (500, "internal_error") == (status, reply["error"]["code"])
    assert "secret" not in reply["error"]["message"]
    assert "/v1/fail failed" in caplog.text


@pytest.mark.attack
def test_a_response_of_more_characters_than_a_model_writes_is_not_scored(address):
    row = {"verifier": "instruction", "answer": {}, "response": "a " * (2**21 + 1)}
    status, reply = call(address, "/v1/score", rows(row))

    assert 422 == status
    assert "rows.0.response: String should have at most 4194304" in reply["error"]["message"]


def fuzz(address, examples):
    """Send requests made of the endpoint's own document; each has the answer that it promises."""
    document = call(address, "/openapi.json")[1]
    operation = document["paths"]["/v1/score"]["post"]
    definitions = document["components"]["schemas"]
    bodies, answers = (
        part["content"]["application/json"]["schema"]
        for part in (operation["requestBody"], operation["responses"]["200"])
    )
    row = definitions["ScoreRow"]
    named = {**row["properties"], "verifier": {"enum": [*table.VERIFIERS, "nobody"]}}
    real = {**definitions, "ScoreRow": {**row, "properties": named}}
    odd = st.fixed_dictionaries({"rows": st.lists(near(real["ScoreRow"], real), max_size=3)})
    check = Draft202012Validator({**answers, "components": document["components"]})

    @settings(max_examples=examples, deadline=None, suppress_health_check=SLOW_DRAWS, database=None)
    @given(values(bodies, real) | odd | near(bodies, real) | NO_NULL)
    def send(body):
        status, reply = call(address, "/v1/score", json.dumps(body).encode())
        assert status in (200, 422), reply
        if status == 200:
            check.validate(reply)
            assert len(body["rows"]) == len(reply["verdicts"])
        else:
            assert {"code", "message"} == reply["error"].keys()

    send()


@pytest.mark.attack
def test_every_request_that_the_document_allows_or_nearly_does_has_its_answer(address):
    fuzz(address, 20)


@pytest.mark.attack
@pytest.mark.slow
def test_so_have_two_thousand_of_them(address):
    fuzz(address, 2000)


@pytest.mark.tools
def test_schemathesis_finds_every_answer_as_the_document_says(address, tmp_path):
    assert "" == complaints(address, tmp_path)


def test_the_document_names_the_verifiers_and_how_a_language_is_written(address):
    fields = call(address, "/openapi.json")[1]["components"]["schemas"]["ScoreRow"]["properties"]

    assert NAMES == fields["verifier"]["enum"]
    language = re.compile(fields["language"]["pattern"])
    assert all(map(language.fullmatch, ("zh-Hant-TW", "PT-br", "fil")))
    assert not any(map(language.fullmatch, ("?!", "vn", "xx-TW", "English")))


@pytest.mark.attack
def test_every_language_of_two_letters_that_the_document_allows_is_accepted(address):
    fields = call(address, "/openapi.json")[1]["components"]["schemas"]["ScoreRow"]["properties"]
    language = re.compile(fields["language"]["pattern"])
    longest = "-abcdefgh" * 3 + "-abcde"
    pairs = map("".join, itertools.product(string.ascii_letters, repeat=2))
    tags = [f"{pair}{longest}" for pair in pairs if language.fullmatch(pair)]

    assert fields["language"]["maxLength"] == len(tags[0])
    asked = [{**ROW, "language": tag} for tag in tags]
    assert 200 == call(address, "/v1/score", rows(*asked))[0]


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "bad_request"),
        (b"GET /health HTTP/9.9\r\n\r\n", 505, "http_version_not_supported"),
        (b"PUT /v1/score HTTP/1.1\r\n\r\n", 405, "method_not_allowed"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414, "request_uri_too_long"),
        (b"GET /health HTTP/1.1\r\na: " + b"a" * 70_000, 431, "request_header_fields_too_large"),
        (JSON_POST + b"\r\n", 411, "length_required"),
        (JSON_POST + b"Content-Length: -1\r\n\r\n", 411, "length_required"),
        (
            JSON_POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
            411,
            "length_required",
        ),
        (
            JSON_POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
            413,
            "too_large",
        ),
        (JSON_POST + b"Content-Length: 2\r\n\r\n\xff\xfe", 422, "bad_request"),
        (
            JSON_POST + b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000,
            422,
            "bad_request",
        ),
    ],
)
def test_a_malformed_request_is_answered_in_json(address, request_, status, code):
    with opened(address) as client:
        client.sendall(request_)
        assert (status, code) == answer(client)


@pytest.mark.parametrize("sent", [b"", b'{"rows": [', None])
def test_a_client_that_leaves_disturbs_nobody(scorer, caplog, sent):
    body = rows({"verifier": "slow", "answer": {}, "response": "100"})
    with served(scorer, RequestLimits()) as place:
        for _ in range(5):
            with opened(place) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(HEAD % len(body) + (body if sent is None else sent))
        assert 200 == call(place, "/v1/score", rows(ROW))[0]
        until(lambda: sum("process_request" in t.name for t in threading.enumerate()), 0)

    assert [] == [record.message for record in caplog.records if record.levelname == "ERROR"]


def test_one_connection_serves_several_requests(address):
    host, _, port = address.removeprefix("http://").partition(":")
    client = http.client.HTTPConnection(host, int(port), timeout=60)
    found = []
    for _ in range(3):
        client.request("POST", "/v1/score", rows(ROW), {"Content-Type": "application/json"})
        found.append(json.load(client.getresponse())["verdicts"][0]["score"])
    client.close()

    assert [1.0] * 3 == found


def test_an_address_that_others_can_reach_needs_a_token(scorer):
    with pytest.raises(SettingsError, match="can be reached from other machines and no token"):
        open_endpoint(scorer, [], "0.0.0.0", 0, RequestLimits())


def test_a_taken_port_is_named(scorer, address):
    port = int(address.rpartition(":")[2])
    with pytest.raises(SettingsError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
        open_endpoint(scorer, [], "127.0.0.1", port, RequestLimits())
