"""Environments of verifiers and OpenEnv, BFCL's simulators: `make test-environments`."""

import ast
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from data_schemas.rows import QuarantinedItem
from tasks.curation.adapters.table import read_file
from tasks.gym.environments.outside import play
from tasks.gym.protocol import join_turns
from tests.test_layout import ROOT

pytestmark = pytest.mark.environments
PYTHON = ROOT / ".venv-environments" / "bin" / "python"
TASKSETS = ROOT / ".venv-verifiers" / "bin" / "python"
HERE = Path(__file__).parent
MUG = '{"name": "stock", "parameters": {"item": "mug"}}'


@pytest.fixture
def environments(tmp_path, monkeypatch):
    """Read rows with the interpreter that has the libraries and our environments."""
    wrapper = tmp_path / "python"

    def read(name, *rows, address="", python=PYTHON):
        path = f"$PYTHONPATH:{HERE}:{tmp_path}"
        wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{python}" "$@"\n')
        wrapper.chmod(0o755)
        places = [f"{library}={wrapper}" for library in play.LIBRARIES]
        monkeypatch.setenv(play.VARIABLE, ",".join([*places, f"openenv:countdown={address}"]))
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return list(read_file(name, 0, path))

    yield read
    play.close()


@pytest.fixture
def countdown():
    """Return the address of a server of OpenEnv."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([PYTHON, HERE / "countdown_server.py", str(port)])
    address = f"http://127.0.0.1:{port}"
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/health").close()
            break
        except urllib.error.URLError:
            time.sleep(0.2)
    yield address
    server.kill()
    server.wait()


def row_of(library, environment, limit=2, **changes):
    named = {"library": library, "environment": environment, "limit": limit}
    return named | {"domain": "tool_use", "language": "en"} | changes


def played(problem, *turns):
    """What is said to every turn, and the verdict."""
    said = [play.observe(problem, turns[: n + 1]) for n in range(len(turns))]
    heard = [None if one is None else " ".join(m.content for m in one) for one in said]
    verdict = play.verify(problem, join_turns(turns))
    return [*heard, verdict.score, verdict.reason]


def test_a_tool_environment_of_verifiers_is_played_unmodified(environments):
    ((mug, kite),) = environments("environments", row_of("verifiers", "word-chain"))

    assert mug.record.messages[0].content.startswith("You keep a shop.\nTo call functions, write")
    assert '"name": "stock"' in mug.record.messages[0].content
    assert ["4", None, 1.0, "correct"] == played(mug.record, MUG, "<think>so</think>4")
    assert ["4", None, 0.0, "wrong"] == played(kite.record, MUG, "4")
    no_item = MUG.replace("mug", "meteor")
    assert ["no such item", None, 0.0, "wrong"] == played(mug.record, no_item, "none")
    assert ["4", "4", "4", None, 0.0] == played(mug.record, *[MUG] * 4)[:5]


def test_the_dice_of_an_environment_of_verifiers_fall_alike_after_a_restart(environments):
    ((mug, _),) = environments("environments", row_of("verifiers", "word-chain"))
    roll = '{"name": "roll", "parameters": {"sides": 1000000}}'

    first = played(mug.record, roll, roll, "4")
    play.close()

    assert first == played(mug.record, roll, roll, "4")
    assert 1.0 == first[3]


def test_a_taskset_of_verifiers_is_played_with_its_tools_unmodified(environments):
    ((mug, kite),) = environments(
        "environments", row_of("verifiers", "word-tasks"), python=TASKSETS
    )
    called = MUG.replace('"stock"', '"stock_stock"')

    assert mug.record.messages[0].content.startswith("You keep a shop.\nTo call functions, write")
    assert '"name": "stock_stock"' in mug.record.messages[0].content
    assert "How many mugs?" == mug.record.messages[1].content
    assert ["4", None, 1.0, "correct"] == played(mug.record, called, "<think>so</think>4")
    assert ["4", None, 0.0, "wrong"] == played(kite.record, called, "4")
    (said, *_) = played(mug.record, called.replace("mug", "meteor"), "none")
    assert "Error executing tool stock" in said
    assert "error: unknown tool 'stock'" == played(mug.record, MUG, "4")[0]


def test_an_environment_of_verifiers_that_speaks_as_the_user_is_played(environments):
    ((_, one),) = environments("environments", row_of("verifiers", "guess-env"), python=TASKSETS)

    found = played(one.record, "5", "0", "0", "1")
    play.close()

    assert [*found[:1], *found[3:]] == ["lower", None, 1.0, "correct"]
    assert {*found[1:3]} <= {"higher", "no, higher"}
    assert found == played(one.record, "5", "0", "0", "1")  # its dice fall alike
    assert ["lower"] * 3 + [None, 0.0, "wrong"] == played(one.record, *"9876")
    assert [None, None, "environment_raised"] == played(one.record, "meteor")


@pytest.mark.parametrize(
    ("changes", "python", "says"),
    [
        ({"arguments": {"agent": {"harness": {"id": "bash"}}}}, TASKSETS, "give it a container"),
        ({"arguments": {"items": 1}}, TASKSETS, "Extra inputs are not permitted"),
        ({"arguments": {"taskset": {"image": "debian"}}}, TASKSETS, "image"),
        ({"environment": "two-seats"}, TASKSETS, "the seats solver, judge; one is played"),
        ({"environment": "older"}, TASKSETS, "made for verifiers until 0.3"),
        ({"environment": "guess-env"}, PYTHON, "played with verifiers 0.4"),
    ],
)
def test_what_is_not_played_of_verifiers_is_refused_by_name(
    environments, tmp_path, changes, python, says
):
    (tmp_path / "older.py").write_text("def load_environment(): pass\n")
    (tmp_path / "two_seats.py").write_text(
        "import verifiers.v1 as vf\n"
        "from word_tasks import WordTasks\n"
        "class Config(vf.EnvConfig):\n"
        "    solver: vf.AgentConfig = vf.AgentConfig()\n"
        "    judge: vf.AgentConfig = vf.AgentConfig()\n"
        "class TwoSeats(vf.Env[Config]):\n"
        "    async def run(self, task, agents): pass\n"
        "__all__ = ['WordTasks', 'TwoSeats']\n"
    )

    (found,) = environments(
        "environments", row_of("verifiers", "word-tasks") | changes, python=python
    )

    assert isinstance(found, QuarantinedItem)
    assert "environment_raised" == found.reason
    assert says in found.detail


def test_an_environment_that_does_not_exist_is_refused(environments):
    (found,) = environments("environments", row_of("verifiers", "no-such-thing"))

    assert isinstance(found, QuarantinedItem)
    assert "environment_raised" == found.reason


def test_a_server_of_openenv_is_played(environments, countdown):
    (found,) = environments("environments", row_of("openenv", "countdown", 4), address=countdown)
    three = found[3].record
    say = [json.dumps({"number": n}) for n in (3, 2, 1, 0)]

    assert "Count down from 3." == three.messages[-1].content
    assert ["go on", "go on", "go on", None, 1.0, "correct"] == played(three, *say)
    assert ["go on", None, 0.0, "wrong"] == played(three, say[0], say[3])
    refused = ["error: Invalid message", 0.0, "unfinished"]
    assert refused == played(three, '{"number": "three"}')
    assert [None, 0.0, "wrong"] == played(three, "three")
    assert [None, None, "environment_raised"] == played(three, '{"number": 99}')


def test_a_server_of_openenv_with_room_for_one_session_plays_many(environments, countdown):
    (found,) = environments("environments", row_of("openenv", "countdown", 4), address=countdown)
    problems = [one.record for one in found][1:]
    says = [[json.dumps({"number": n}) for n in range(start, -1, -1)] for start in (1, 2, 3)]

    for length in range(1, 5):  # all open episodes take a turn together
        for problem, turns in zip(problems, says, strict=True):
            heard = play.observe(problem, turns[:length])
            assert (heard is None) == (length >= len(turns))
    for problem, turns in zip(problems, says, strict=True):
        assert "correct" == play.verify(problem, join_turns(turns)).reason


def bfcl_rows():
    if "EACHPROMPT_DATA" not in os.environ:
        pytest.skip("EACHPROMPT_DATA is not set")
    folder = Path(os.environ["EACHPROMPT_DATA"]) / "bfcl_v4"
    lines = (folder / "multi_turn_base.jsonl").read_text(encoding="utf-8").splitlines()
    docs = (folder / "multi_turn_func_doc.jsonl").read_text(encoding="utf-8").splitlines()
    functions = [one for line in docs for one in json.loads(line)["functions"]]
    names = {one["name"]: list(one["parameters"]["properties"]) for one in functions}
    return [json.loads(line) for line in lines], names


def spoken(row, names):
    """The turns of somebody who makes the calls of the solution, and then says so."""
    for calls in row["ground_truth"]:
        written = []
        for call in calls:
            node = ast.parse(call, mode="eval").body
            values = [ast.literal_eval(one) for one in node.args]
            arguments = dict(zip(names[node.func.id], values, strict=False))
            arguments |= {one.arg: ast.literal_eval(one.value) for one in node.keywords}
            written.append(json.dumps({"name": node.func.id, "parameters": arguments}))
        if written:
            yield "\n".join(written)
        yield "Done."


def test_bfcl_judges_the_state_after_every_turn(environments):
    rows, names = bfcl_rows()

    found = environments("bfcl_multi_turn", *rows)

    problems = {item.record.id.split("/")[1]: item.record for (item,) in found}
    assert 200 == len(problems)
    for number, row in enumerate(rows):
        turns = list(spoken(row, names))
        assert [1.0, "correct"] == played(problems[row["id"]], *turns)[-2:], row["id"]
        if number % 10:
            continue
        first = next(place for place, turn in enumerate(turns) if turn != "Done.")
        # A user's turn without its calls.
        left_out = [*turns[:first], *turns[first + 1 :]]
        assert 0.0 == play.verify(problems[row["id"]], join_turns(left_out)).score, row["id"]


def test_what_bfcl_cannot_execute_is_refused_by_name(environments):
    (row, *_), _ = bfcl_rows()
    changes = [
        ({"missed_function": {"2": ["sort"]}}, "missed_function"),
        ({"involved_classes": ["WebSearchAPI"]}, "no_simulator"),
        ({"ground_truth": [["cd(folder='nowhere')"]] * 4}, ""),
        ({"ground_truth": row["ground_truth"][:3]}, "bad_turns"),
    ]

    found = environments("bfcl_multi_turn", *[row | change for change, _ in changes])

    reasons = [one.reason if isinstance(one, QuarantinedItem) else "" for one in found]
    assert [reason for _, reason in changes] == reasons


def test_what_a_policy_calls_is_not_evaluated(environments):
    (row, *_), _ = bfcl_rows()
    ((item,),) = environments("bfcl_multi_turn", row)
    calls = [
        {"name": "__import__('os').getcwd", "parameters": {}},
        {"name": "cd", "parameters": {"folder)or(__import__": "os"}},
        {"name": "mkdir", "parameters": {"dir_name": "x'); __import__('os').abort() #"}},
    ]

    (said,) = play.observe(item.record, [json.dumps(calls[0])])
    assert "function_that_was_not_offered" in said.content
    (said,) = play.observe(item.record, [json.dumps(calls[1])])
    assert "function_that_was_not_offered" in said.content
    assert play.observe(item.record, [json.dumps(calls[2])]) is not None
