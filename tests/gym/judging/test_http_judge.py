"""A judge behind HTTP, with real endpoints that misbehave."""

import threading
import time
from contextlib import contextmanager

import pytest

from tasks.errors import SettingsError
from tasks.gym.judging import life
from tasks.gym.judging.chat_client import PATH
from tasks.gym.judging.endpoint import read_address
from tasks.gym.judging.http_judge import HttpJudge
from tasks.gym.judging.protocol import JudgeCalls
from tests.chat_endpoint import NOBODY, completion, endpoint, prompt, send


@contextmanager
def judge_at(address, **options):
    judge = HttpJudge(address, "genrm", first_pause_s=0.01, **options)
    yield judge
    judge.close()


def echo(handler, asked, _):
    send(handler, completion(asked["messages"][-1]["content"].upper()))


def test_replies_come_in_order_and_the_request_is_greedy():
    seen = []

    def behave(handler, asked, _):
        seen.append((handler.path, handler.headers["Authorization"], asked))
        echo(handler, asked, _)

    with endpoint(behave) as address, judge_at(address + "/", api_key="s3cret") as judge:
        assert ["A", "B", "C"] == judge.ask([prompt("a"), prompt("b"), prompt("c")])
        assert JudgeCalls(asked=3) == judge.calls
        assert f"genrm at {address}" == judge.name
    path, key, asked = seen[0]
    assert ("/v1/chat/completions", "Bearer s3cret") == (path, key)
    assert ("genrm", 0) == (asked["model"], asked["temperature"])
    assert [{"role": "user", "content": "a"}] in [one["messages"] for *_, one in seen]


def test_no_more_prompts_than_allowed_are_asked_side_by_side():
    under_way, most, lock = [0], [0], threading.Lock()

    def behave(handler, asked, _):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.02)
        with lock:
            under_way[0] -= 1
        echo(handler, asked, _)

    with endpoint(behave) as address, judge_at(address, max_concurrent=3) as judge:
        first = threading.Thread(target=judge.ask, args=([prompt("a")] * 6,))
        first.start()
        judge.ask([prompt("b")] * 6)
        first.join()

    assert 3 == most[0]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_is_tried_again(status):
    def behave(handler, asked, number):
        send(handler, b"busy", status) if number < 2 else echo(handler, asked, number)

    with endpoint(behave) as address, judge_at(address) as judge:
        assert ["A"] == judge.ask([prompt("a")])
        assert JudgeCalls(asked=1, retried=2) == judge.calls


def test_a_connection_that_closes_without_a_word_is_tried_again():
    def behave(handler, asked, number):
        if number:
            echo(handler, asked, number)
        else:
            handler.close_connection = True

    with endpoint(behave) as address, judge_at(address) as judge:
        assert ["A"] == judge.ask([prompt("a")])


def test_a_body_that_breaks_off_is_tried_again():
    def behave(handler, asked, number):
        if number:
            echo(handler, asked, number)
        else:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(completion("half")[:20])
            handler.close_connection = True

    with endpoint(behave) as address, judge_at(address) as judge:
        assert ["A"] == judge.ask([prompt("a")])
        assert 1 == judge.calls.retried


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>gateway</html>", "not a chat completion"),
        (b'{"choices": []}', "not a chat completion"),
        (b"[" * 100_000, "not a chat completion"),
        (b"\xff\xfe", "not a chat completion"),
        (b'{"choices": [{"message": {"content": null}}]}', "no text"),
        (completion("x" * 2**20), "more than"),
    ],
    ids=["html", "empty", "deep", "bytes", "null", "megabyte"],
)
def test_nonsense_is_silence_with_its_cause_in_the_log(body, says, caplog):
    with endpoint(lambda handler, *_: send(handler, body)) as address, judge_at(address) as judge:
        assert [None] == judge.ask([prompt("a")])
        assert JudgeCalls(asked=1, failed=1) == judge.calls
    assert says in caplog.text


def test_a_prompt_the_endpoint_refuses_costs_that_prompt_only():
    def behave(handler, asked, number):
        if asked["messages"][0]["content"] == "too long":
            send(handler, b"context length exceeded", 400)
        else:
            echo(handler, asked, number)

    with endpoint(behave) as address, judge_at(address, max_concurrent=1) as judge:
        replies = judge.ask([prompt("too long"), prompt("too long"), prompt("a")])

    assert [None, None, "A"] == replies


def test_a_silent_endpoint_is_left_after_the_deadline():
    release = threading.Event()
    released = list[bool]()

    def behave(*_):
        released.append(release.wait(60))

    with endpoint(behave) as address, judge_at(address, timeout_s=0.1) as judge:
        start = time.monotonic()
        assert [None] == judge.ask([prompt("a")])
        took = time.monotonic() - start
        assert [] == released
        # The timeout is that of the prompt: what took all of it is not sent again.
        assert JudgeCalls(asked=1, failed=1) == judge.calls
        release.set()

    assert took >= 0.1


def test_an_endpoint_that_drips_does_not_hold_a_prompt():
    stop = threading.Event()
    ended = list[str]()

    def behave(handler, *_):
        handler.send_response(200)
        handler.end_headers()
        for _drop in range(3000):  # a minute
            if stop.wait(0.02):
                return
            handler.wfile.write(b" ")
        ended.append("by itself")

    with endpoint(behave) as address, judge_at(address, timeout_s=0.15) as judge:
        assert [None] == judge.ask([prompt("a")])
        assert [] == ended
        stop.set()


def test_a_judge_that_is_down_gives_no_text_for_any_prompt(caplog):
    with judge_at(NOBODY, timeout_s=0.2, max_concurrent=2) as judge:
        assert [None] * 200 == judge.ask([prompt("a")] * 200)

        assert 200 == judge.calls.failed
    assert "no reply to 200 of 200 requests" in caplog.text
    assert "refused" in caplog.text


def test_a_judge_that_is_down_is_not_asked_for_every_prompt():
    reached = set[str]()

    def behave(handler, asked, number):
        reached.add(asked["messages"][0]["content"])
        send(handler, b"", 503)

    with endpoint(behave) as address, judge_at(address, timeout_s=0.2, max_concurrent=2) as judge:
        assert [None] * 200 == judge.ask([prompt(str(n)) for n in range(200)])

    # Two in a row without a reply, and at most two more that were running by then.
    assert len(reached) <= 4


def test_after_a_timeout_without_a_reply_nobody_waits_for_a_second_one(monkeypatch):
    monkeypatch.setattr(life, "TICK_S", 0.1)
    hangs, over, reached = [True], threading.Event(), list[int]()

    def behave(handler, asked, number):
        reached.append(number)
        if hangs[0]:
            over.wait(60.0)
        echo(handler, asked, number)

    with endpoint(behave) as address, judge_at(address, timeout_s=1.0, max_concurrent=2) as judge:
        assert [None] * 20 == judge.ask([prompt("a")] * 20)
        # Two that time out, and one that a thread began between their ends.
        assert len(reached) <= 3
        first = len(reached)
        assert [None] * 20 == judge.ask([prompt("a")] * 20)
        # One at most: a machine that took longer than the pause for this sends a probe.
        assert len(reached) <= first + 1

        hangs[0] = False
        time.sleep(1.1)
        assert ["A"] == judge.ask([prompt("a")])
        over.set()


def test_a_judge_that_was_down_is_asked_again_at_the_next_call():
    down = [True]

    def behave(handler, asked, number):
        send(handler, b"", 503) if down[0] else echo(handler, asked, number)

    with endpoint(behave) as address, judge_at(address, timeout_s=0.1) as judge:
        assert [None] == judge.ask([prompt("a")])
        down[0] = False
        assert ["A"] == judge.ask([prompt("a")])


@pytest.mark.parametrize(
    ("status", "fix"), [(401, "API_KEY"), (403, "API_KEY"), (404, "a name from http")]
)
def test_what_the_user_must_repair_is_raised_with_the_fix(status, fix):
    behave = lambda handler, *_: send(handler, b"", status)  # noqa: E731
    with (
        endpoint(behave) as address,
        judge_at(address, api_key="s3cret") as judge,
        pytest.raises(SettingsError, match=fix) as caught,
    ):
        judge.ask([prompt("a")])
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["", "host:8000/v1", "ftp://host/v1", "http://", "http://host:port/v1", "http://[/"]
)
def test_an_address_that_is_no_base_url_is_refused(address):
    with pytest.raises(SettingsError, match=r"http://host:8000/v1"):
        read_address(address, PATH)


def test_an_address_names_host_port_and_path():
    plain = read_address("http://host:8000/v1/", PATH)
    secure = read_address("https://api.example/v1", PATH)

    assert ("host", 8000, "/v1/chat/completions", False) == (
        *(plain.host, plain.port, plain.path, plain.secure),
    )
    assert (None, True) == (secure.port, secure.secure)


def test_a_key_that_would_break_the_request_is_refused():
    with pytest.raises(SettingsError, match="line break"):
        HttpJudge("http://host/v1", "genrm", api_key="key\nInjected: header")
