"""An endpoint whose process is stopped or killed, and one that only takes its time."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from data_schemas.rl_settings import JudgeKind, JudgeSettings, RewardSettings
from data_schemas.rows import Domain, Problem
from tasks.engines.scoring import open_scoring
from tasks.gym.judging import life
from tasks.gym.judging.http_judge import HttpJudge
from tasks.gym.judging.life import Life
from tests.chat_endpoint import completion, endpoint, prompt, send

SERVER = """
import time
from tests.chat_endpoint import completion, endpoint, send

def behave(handler, asked, number):
    send(handler, completion(asked["messages"][-1]["content"]))

with endpoint(behave) as address:
    print(address, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def served():
    """An endpoint in a process of its own, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        text=True,
    )
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture
def soon(monkeypatch):
    """Everything fifteen times as fast."""
    for name in ("SILENCE_S", "LOOK_S", "TICK_S"):
        monkeypatch.setattr(life, name, getattr(life, name) / 15)


def test_a_stopped_or_killed_endpoint_and_the_probe_after_it_take_less_than_a_minute():
    assert life.SILENCE_S + life.TICK_S + 2 * life.LOOK_S < 60.0


@pytest.mark.parametrize("harm", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.usefixtures("soon")
def test_a_step_whose_judge_is_stopped_or_killed_is_over_long_before_its_deadline(served, harm):
    process, address = served
    judge = JudgeSettings(kind=JudgeKind.HTTP, address=address, model="genrm", timeout_s=3600.0)
    problem = Problem(
        id="p",
        domain=Domain.OPEN_TEXT,
        language="en",
        messages=prompt("Write a haiku."),
        verifier="generative_judge",
        answer='{"mode":"reference","reference":"four"}',
        source="test",
        source_row="0" * 64,
    )
    with open_scoring(None, RewardSettings(judge=judge)) as service:
        service.score([problem], ["a"])
        os.kill(process.pid, harm)
        start = time.monotonic()
        verdicts = service.score([problem] * 40, [f"answer {n}" for n in range(40)])
        took = time.monotonic() - start

    assert {(True, "judge_unavailable")} == {(one.abstained, one.reason) for one in verdicts}
    assert took < 30.0


@pytest.mark.usefixtures("soon")
def test_an_endpoint_that_thinks_for_long_is_waited_for():
    def behave(handler, asked, _):
        time.sleep(2 * life.SILENCE_S)
        send(handler, completion("thought"))

    with endpoint(behave) as address:
        judge = HttpJudge(address, "genrm", timeout_s=600.0)
        assert ["thought"] * 3 == judge.ask([prompt("a")] * 3)
        judge.close()


@pytest.mark.usefixtures("soon")
def test_an_endpoint_that_goes_on_is_asked_again(served, caplog):
    process, address = served
    judge = HttpJudge(address, "genrm", timeout_s=3600.0)
    os.kill(process.pid, signal.SIGSTOP)
    assert [None] * 3 == judge.ask([prompt("a")] * 3)
    os.kill(process.pid, signal.SIGCONT)

    assert ["b"] == judge.ask([prompt("b")])
    assert "no sign of life for 2 s" in caplog.text
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
