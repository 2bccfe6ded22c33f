"""Nothing is lost and nothing arrives twice, whoever dies in between."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tasks.errors import DataError, EngineError
from tasks.lineage import spool as spool_module
from tasks.lineage.spool import Event, Spool, new_spool, ship_left_over


class Inbox:
    """A receiver that keeps what it gets, and can be away or refuse."""

    def __init__(self) -> None:
        self.got: list[tuple[str, Event]] = []
        self.requests: list[int] = []
        self.away_after: int | None = None
        self.refuses = ""

    def apply(self, run: str, events: Sequence[Event]) -> None:
        if self.away_after is not None and len(self.requests) >= self.away_after:
            raise EngineError("connection refused")
        if events[0]["kind"] == self.refuses:
            raise DataError("bad value")
        self.requests.append(len(events))
        self.got += [(run, event) for event in events]

    def steps(self) -> list[int]:
        return [event["step"] for _, event in self.got if event["kind"] == "metrics"]


@pytest.fixture
def make(tmp_path):
    """Open spools and close them after the test."""
    opened: list[Spool] = []

    def make(run: str) -> Spool:
        opened.append(new_spool(tmp_path, run))
        return opened[-1]

    yield make
    for spool in opened:
        if spool.open:
            spool.close(shipped=False)


def metrics(step: int, count: int = 1) -> Event:
    return {"kind": "metrics", "step": step, "values": {f"m{i}": 1.0 for i in range(count)}}


def fill(spool: Spool, steps: int) -> None:
    spool.append({"kind": "start"})
    for step in range(steps):
        spool.append(metrics(step))


def test_events_arrive_in_order_with_the_key_of_their_run(make, tmp_path):
    inbox, spool = Inbox(), make("e1.rl.one")
    fill(spool, 3)
    spool.append({"kind": "finish"})

    assert spool.ship(inbox)
    assert ["start", "metrics", "metrics", "metrics", "finish"] == [
        event["kind"] for _, event in inbox.got
    ]
    assert {"e1.rl.one"} == {run for run, _ in inbox.got}


def test_shipping_again_sends_only_what_is_new(make, tmp_path):
    inbox, spool = Inbox(), make("e1.rl")
    fill(spool, 3)
    spool.ship(inbox)
    spool.append(metrics(3))
    spool.ship(inbox)

    assert [0, 1, 2, 3] == inbox.steps()


def test_metrics_travel_in_batches_of_at_most_500_values(make, tmp_path):
    inbox, spool = Inbox(), make("e1.rl")
    for step in range(30):
        spool.append(metrics(step, count=40))
    spool.ship(inbox)

    assert [12, 12, 6] == inbox.requests  # 12 x 40 = 480, one more step would be 520


def test_an_outage_keeps_the_rest_and_the_next_try_sends_it_once(make, tmp_path, caplog):
    inbox, spool = Inbox(), make("e1.rl")
    spool.append({"kind": "start"})
    spool.append(metrics(0))
    spool.append({"kind": "facts", "values": {}})
    inbox.away_after = 2

    assert not spool.ship(inbox)
    assert "MLflow does not answer" in caplog.text
    inbox.away_after = None
    assert spool.ship(inbox)
    assert ["start", "metrics", "facts"] == [event["kind"] for _, event in inbox.got]


def test_what_is_refused_for_good_does_not_block_the_rest(make, tmp_path, caplog):
    inbox, spool = Inbox(), make("e1.rl")
    inbox.refuses = "facts"
    for kind in ("start", "facts", "finish"):
        spool.append({"kind": kind})

    assert spool.ship(inbox)
    assert ["start", "finish"] == [event["kind"] for _, event in inbox.got]
    assert "MLflow refused facts of e1.rl: bad value" in caplog.text


def test_a_crash_before_the_offset_moves_sends_the_same_events_again(make, tmp_path):
    inbox, spool = Inbox(), make("e1.rl")
    fill(spool, 2)
    spool.ship(inbox)
    spool.path.with_suffix(".offset").unlink()
    spool.ship(inbox)

    assert [0, 1, 0, 1] == inbox.steps()  # the receiver takes the second for the first


def test_a_torn_last_line_is_left_out_and_the_rest_arrives(make, tmp_path, caplog):
    spool = make("e1.rl")
    fill(spool, 2)
    spool.close(shipped=False)
    with spool.path.open("ab") as stream:
        stream.write(b'{"kind": "metrics", "st')
    inbox = Inbox()
    with caplog.at_level(logging.WARNING):
        left = ship_left_over(tmp_path, inbox)

    assert [] == left
    assert ["start", "metrics", "metrics", "finish"] == [event["kind"] for _, event in inbox.got]
    assert "KILLED" == inbox.got[-1][1]["status"]
    assert "a torn line of 24 bytes is left out" in caplog.text


def test_a_spool_in_use_is_left_alone(make, tmp_path):
    spool = make("e1.rl")
    fill(spool, 2)
    inbox = Inbox()

    assert [] == ship_left_over(tmp_path, inbox)
    assert [] == inbox.got


def test_a_killed_stage_is_shipped_by_the_next_one_and_filed_away(tmp_path):
    script = """
import os, sys
from pathlib import Path
from tasks.lineage.spool import new_spool
spool = new_spool(Path(sys.argv[1]), "e1.rl")
for step in range(3):
    spool.append({"kind": "metrics", "step": step, "values": {"a": 1.0}})
os.kill(os.getpid(), 9)
"""
    root = Path(spool_module.__file__).parents[2]
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, check=False)
    inbox = Inbox()
    inbox.away_after = 0
    assert 1 == len(ship_left_over(tmp_path, inbox))
    inbox.away_after = None
    assert [] == ship_left_over(tmp_path, inbox)
    ship_left_over(tmp_path, inbox)

    assert [0, 1, 2] == inbox.steps()
    assert ["KILLED"] == [event["status"] for _, event in inbox.got if event["kind"] == "finish"]
    assert [] == list(tmp_path.glob("*.*"))
    assert 1 == len(list((tmp_path / "shipped").iterdir()))


def test_a_shipped_spool_moved_back_is_told_again(make, tmp_path):
    spool = make("e1.rl")
    fill(spool, 2)
    spool.append({"kind": "finish", "status": "FINISHED"})
    spool.close(shipped=spool.ship(Inbox()))
    (filed,) = (tmp_path / "shipped").iterdir()
    filed.rename(tmp_path / filed.name)
    inbox = Inbox()
    ship_left_over(tmp_path, inbox)

    assert ["start", "metrics", "metrics", "finish"] == [event["kind"] for _, event in inbox.got]


def test_producers_arrive_before_their_readers(make, tmp_path):
    for name in ("z-first", "a-second"):
        spool = make(name)
        spool.append({"kind": "finish", "status": "FINISHED"})
        spool.close(shipped=False)
    (first,) = tmp_path.glob("z-first*")
    os.utime(first, (1, 1))
    inbox = Inbox()
    ship_left_over(tmp_path, inbox)

    assert ["z-first", "a-second"] == [run for run, _ in inbox.got]


@pytest.mark.parametrize("line", [b"[1]\n", b'{"no": "kind"}\n', b"\xff\n", b"\n"])
def test_a_line_that_is_no_event_is_left_out(tmp_path, line):
    path = tmp_path / "e1.rl.00.jsonl"
    path.write_bytes(line + json.dumps({"kind": "finish"}).encode() + b"\n")
    inbox = Inbox()
    spool = Spool(path)
    spool.ship(inbox)
    spool.close(shipped=True)

    assert [{"kind": "finish"}] == [event for _, event in inbox.got]
