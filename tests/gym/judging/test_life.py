"""An endpoint whose process is stopped or killed, and one that only takes its time."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from data_schemas.rl_settings import JudgeKind, JudgeSettings, RewardSettings
from data_schemas.rows import Domain
from tasks.engines.scoring import open_scoring
from tasks.gym.judging import life
from tasks.gym.judging.http_judge import HttpJudge
from tasks.gym.judging.life import Life
from tests.chat_endpoint import completion, endpoint, prompt, send
from tests.records import problem_of

SERVER = """
import http.server, json

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = {"choices": [{"message": {"content": body["messages"][-1]["content"]}}]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()
"""
"""An endpoint that repeats the prompt, and imports nothing of ours."""


@pytest.fixture
def served():
    """An endpoint in a process of its own, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", SERVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture
def patience(monkeypatch):
    """Look at once whoever waits; a look may take as long as it is set to."""

    def set_look(seconds: float) -> None:
        monkeypatch.setattr(life, "SILENCE_S", 0.0)
        monkeypatch.setattr(life, "TICK_S", 0.02)
        monkeypatch.setattr(life, "LOOK_S", seconds)

    return set_look


AT_ONCE_S = 0.2
"""Seconds of a look at what cannot respond: the load of the machine changes nothing."""
LONG_S = 250.0
"""Seconds of a look at what lives, on a machine of any load."""


def test_a_stopped_or_killed_endpoint_and_the_probe_after_it_take_less_than_a_minute():
    assert life.SILENCE_S + life.TICK_S + 2 * life.LOOK_S < 60.0


@pytest.mark.parametrize("harm", [signal.SIGSTOP, signal.SIGKILL])
def test_a_step_whose_judge_is_stopped_or_killed_is_over_before_its_deadline(
    served, patience, harm
):
    process, address = served
    # Longer than pytest waits for a test.
    judge = JudgeSettings(kind=JudgeKind.HTTP, address=address, model="genrm", timeout_s=3600.0)
    problem = problem_of(
        prompt("Write a haiku."),
        '{"mode":"reference","reference":"four"}',
        id="p",
        domain=Domain.OPEN_TEXT,
        verifier="generative_judge",
    )
    with open_scoring(None, RewardSettings(judge=judge)) as service:
        service.score([problem], ["a"])
        os.kill(process.pid, harm)
        patience(AT_ONCE_S)
        verdicts = service.score([problem] * 40, [f"answer {n}" for n in range(40)])

    assert {(True, "judge_unavailable")} == {(one.abstained, one.reason) for one in verdicts}


def test_an_endpoint_that_thinks_while_it_is_looked_at_is_waited_for(patience):
    looks = threading.Semaphore(0)
    patience(LONG_S)

    def behave(handler, asked, _):
        for _look in range(3):
            looks.acquire()
        send(handler, completion("thought"))

    with endpoint(behave, note_look=looks.release) as address:
        judge = HttpJudge(address, "genrm", timeout_s=3600.0)
        assert ["thought"] * 3 == judge.ask([prompt("a")] * 3)
        judge.close()


def test_an_endpoint_that_goes_on_is_asked_again(served, patience, caplog):
    process, address = served
    judge = HttpJudge(address, "genrm", timeout_s=3600.0)
    os.kill(process.pid, signal.SIGSTOP)
    patience(AT_ONCE_S)
    assert [None] * 3 == judge.ask([prompt("a")] * 3)
    os.kill(process.pid, signal.SIGCONT)
    patience(LONG_S)

    assert ["b"] == judge.ask([prompt("b")])
    assert "no sign of life for 0 s" in caplog.text
    judge.close()


def test_one_look_serves_all_that_wait(monkeypatch):
    monkeypatch.setattr(life, "SILENCE_S", 0.0)
    looks = []
    alive = Life(lambda: looks.append(1) or False)
    threads = [threading.Thread(target=alive.has_gone, args=(0.0,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [1] == looks
    assert alive.is_gone
    alive.note_response()
    assert not alive.is_gone


def test_what_responded_lately_is_not_looked_at():
    alive = Life(pytest.fail)
    alive.note_response()

    assert not alive.has_gone(0.0)
    assert alive.back()
