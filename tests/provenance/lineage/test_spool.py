"""Nothing is lost and nothing arrives twice, whoever dies in between."""

import json
import logging
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from data_schemas.events import (
    EVENT,
    ArtifactLinked,
    Event,
    FactsCounted,
    MetricsLogged,
    ModelRegistered,
    StageFinished,
    StageStarted,
)
from tasks.errors import DataError, EngineError
from tasks.provenance.lineage import spool as spool_module
from tasks.provenance.lineage.spool import Spool, new_spool, ship_left_over

START = StageStarted(time=1.0, stage="rl", params={"steps": "3"}, tags={"t": "v"})
FACTS = FactsCounted(time=2.0, values={"rows": 3, "share": 0.5, "name": "a"})
FINISH = StageFinished(time=3.0, status="FINISHED")


class Inbox:
    """A receiver that keeps what it gets, and can be away or refuse."""

    def __init__(self) -> None:
        self.got: list[tuple[str, Event]] = []
        self.requests: list[int] = []
        self.away_after: int | None = None
        self.refuses = ""
        self.reason = "connection refused"

    def apply(self, run: str, events: Sequence[Event]) -> None:
        if self.away_after is not None and len(self.requests) >= self.away_after:
            raise EngineError(self.reason)
        if events[0].kind == self.refuses:
            raise DataError("bad value")
        self.requests.append(len(events))
        self.got += [(run, event) for event in events]

    def steps(self) -> list[int]:
        return [event.step for _, event in self.got if event.kind == "metrics"]


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
    return MetricsLogged(step=step, values={f"m{i}": 1.0 for i in range(count)})


def fill(spool: Spool, steps: int) -> None:
    spool.append(START)
    for step in range(steps):
        spool.append(metrics(step))


def test_events_arrive_in_order_with_the_key_of_their_run(make, tmp_path):
    inbox, spool = Inbox(), make("e1.rl.one")
    fill(spool, 3)
    spool.append(FINISH)
    spool.ship(inbox)

    assert ["start", "metrics", "metrics", "metrics", "finish"] == [
        event.kind for _, event in inbox.got
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
    spool.append(START)
    spool.append(metrics(0))
    spool.append(FACTS)
    inbox.away_after = 2

    with pytest.raises(EngineError, match="MLflow does not answer"):
        spool.ship(inbox)
    inbox.away_after = None
    spool.ship(inbox)
    assert ["start", "metrics", "facts"] == [event.kind for _, event in inbox.got]


def test_an_outage_is_reported_with_the_reason_that_ends_a_message_of_mlflow(make):
    inbox, spool = Inbox(), make("e1.rl")
    spool.append(START)
    path = "/api/2.0/mlflow/experiments/get-by-name"
    inbox.reason = (
        f"MlflowException: API request to http://127.0.0.1:20706{path} failed with exception "
        "HTTPConnectionPool(host='127.0.0.1', port=20706): Max retries exceeded with url: "
        f"{path}?experiment_name=eachprompt (Caused by ResponseError('too many 503 error "
        "responses'))"
    )
    inbox.away_after = 0

    with pytest.raises(EngineError, match="too many 503 error responses"):
        spool.ship(inbox)


def test_a_refused_event_stays_in_its_spool_with_what_follows(make, tmp_path):
    inbox, spool = Inbox(), make("e1.rl")
    inbox.refuses = "facts"
    for event in (START, FACTS, FINISH):
        spool.append(event)

    for _ in range(2):
        with pytest.raises(DataError, match=r"MLflow refused 'facts' of e1\.rl; .*: bad value"):
            spool.ship(inbox)
    assert ["start"] == [event.kind for _, event in inbox.got]
    inbox.refuses = ""
    spool.ship(inbox)
    assert ["start", "facts", "finish"] == [event.kind for _, event in inbox.got]


def test_a_refused_event_does_not_stop_other_spools(make, tmp_path, caplog):
    for name, event in (("refused", FACTS), ("taken", START)):
        spool = make(name)
        spool.append(event)
        spool.append(FINISH)
        spool.close(shipped=False)
    inbox = Inbox()
    inbox.refuses = "facts"
    left = ship_left_over(tmp_path, inbox)

    assert ["refused"] == [path.name.split(".")[0] for path in left.spools]
    assert left.reachable
    assert {"taken"} == {run for run, _ in inbox.got}
    assert "MLflow refused 'facts' of refused" in caplog.text


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

    assert () == left.spools
    assert ["start", "metrics", "metrics", "finish"] == [event.kind for _, event in inbox.got]
    assert "KILLED" == inbox.got[-1][1].status
    assert "a torn line of 24 bytes is left out" in caplog.text


def test_a_spool_in_use_is_left_alone(make, tmp_path):
    spool = make("e1.rl")
    fill(spool, 2)
    inbox = Inbox()

    assert () == ship_left_over(tmp_path, inbox).spools
    assert [] == inbox.got


def test_a_killed_stage_is_shipped_by_the_next_one_and_filed_away(tmp_path):
    script = """
import os, sys
from pathlib import Path
from data_schemas.events import MetricsLogged
from tasks.provenance.lineage.spool import new_spool
spool = new_spool(Path(sys.argv[1]), "e1.rl")
for step in range(3):
    spool.append(MetricsLogged(step=step, values={"a": 1.0}))
os.kill(os.getpid(), 9)
"""
    root = Path(spool_module.__file__).parents[3]
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, check=False)
    inbox = Inbox()
    inbox.away_after = 0
    left = ship_left_over(tmp_path, inbox)
    assert (1, False) == (len(left.spools), left.reachable)
    inbox.away_after = None
    assert () == ship_left_over(tmp_path, inbox).spools
    ship_left_over(tmp_path, inbox)

    assert [0, 1, 2] == inbox.steps()
    assert ["KILLED"] == [event.status for _, event in inbox.got if event.kind == "finish"]
    assert [] == list(tmp_path.glob("*.*"))
    assert 1 == len(list((tmp_path / "shipped").iterdir()))


def test_a_shipped_spool_moved_back_is_logged_again(make, tmp_path):
    spool = make("e1.rl")
    fill(spool, 2)
    spool.append(FINISH)
    spool.ship(Inbox())
    spool.close(shipped=True)
    (filed,) = (tmp_path / "shipped").iterdir()
    filed.rename(tmp_path / filed.name)
    inbox = Inbox()
    ship_left_over(tmp_path, inbox)

    assert ["start", "metrics", "metrics", "finish"] == [event.kind for _, event in inbox.got]


def test_producers_arrive_before_their_readers(make, tmp_path):
    for time, name in ((1.0, "z-first"), (2.0, "a-second")):
        spool = make(name)
        spool.append(FINISH.model_copy(update={"time": time}))
        spool.close(shipped=False)
    (first,) = tmp_path.glob("z-first*")
    os.utime(first)  # fetched last
    inbox = Inbox()
    ship_left_over(tmp_path, inbox)

    assert ["z-first", "a-second"] == [run for run, _ in inbox.got]


@pytest.mark.parametrize(
    "line",
    [
        b"[1]",
        b'{"no": "kind"}',
        b'{"kind": "foo", "time": 1.0}',
        b'{"kind": "metrics", "time": 1.0, "step": 1, "values": {"a": "x"}}',
        b'{"kind": "finish", "time": 1.0, "status": "FINISHED", "new": 1}',
    ],
)
def test_an_event_of_another_version_is_left_out_by_name(tmp_path, caplog, line):
    path = tmp_path / "e1.rl.00.jsonl"
    path.write_bytes(line + b"\n" + FINISH.model_dump_json().encode() + b"\n")
    inbox = Inbox()
    with caplog.at_level(logging.WARNING):
        ship_left_over(tmp_path, inbox)

    assert [FINISH] == [event for _, event in inbox.got]
    assert f"{path}: {line!r:.80} is not an event of this version" in caplog.text
    assert "run a stage with the version that wrote it" in caplog.text


@pytest.mark.parametrize("line", [b"\xff", b'{"kind": "fin', b""])
def test_a_line_that_is_no_json_is_left_out(tmp_path, line):
    path = tmp_path / "e1.rl.00.jsonl"
    path.write_bytes(line + b"\n" + FINISH.model_dump_json().encode() + b"\n")
    inbox = Inbox()
    ship_left_over(tmp_path, inbox)

    assert [FINISH] == [event for _, event in inbox.got]


LINK = {"role": "start", "uri": "u", "digest": "d", "statement": "s", "name": "sft", "parents": []}


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ({"kind": "start", "stage": "rl", "params": {"steps": "3"}, "tags": {"t": "v"}}, START),
        ({"kind": "facts", "values": {"rows": 3, "share": 0.5, "name": "a"}}, FACTS),
        ({"kind": "finish", "status": "FINISHED"}, FINISH),
        (
            {"kind": "metrics", "step": 1, "values": {"a": 1}},
            MetricsLogged(step=1, values={"a": 1}),
        ),
        (
            {"kind": "input", "type": "CheckpointRef", **LINK},
            ArtifactLinked(kind="input", type="CheckpointRef", **LINK),
        ),
        (
            {
                "kind": "register",
                "name": "m",
                "digest": "d",
                "uri": "u",
                "statement": "s",
                "released": True,
                "tags": {},
            },
            ModelRegistered(name="m", digest="d", uri="u", statement="s", released=True, tags={}),
        ),
    ],
)
def test_the_lines_of_a_spool_are_plain_json(line, event):
    dated = {"time": 9.0, **line}

    assert event.model_copy(update={"time": 9.0}) == EVENT.validate_json(json.dumps(dated))
    assert json.loads(event.model_dump_json()).items() >= line.items()


def test_curves_may_hold_nan_and_infinity(make):
    inbox, spool = Inbox(), make("e1.rl")
    spool.append(MetricsLogged(step=1, values={"ratio": float("nan"), "kl": float("inf")}))
    spool.ship(inbox)

    ((_, event),) = inbox.got
    assert math.isnan(event.values["ratio"])
    assert math.inf == event.values["kl"]
