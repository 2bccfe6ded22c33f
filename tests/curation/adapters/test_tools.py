"""Rows of tool use."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from data_schemas.rows import Demonstration, Problem, QuarantinedItem
from tasks.curation.adapters.table import read_file
from tasks.curation.adapters.tools import toolrl_rlla, xlam
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.table import score_batch


def records(row):
    return [item.record for item in toolrl_rlla(RawRow("rows-1", "0" * 64, row))]


def test_toolrl_rows_without_calls_are_demonstrations_only():
    row = {"instruction": "You have tools.", "input": "Hello", "output": "<think>t</think>Hi"}
    call = '{"name": "f", "parameters": {"a": 1}}'
    called = row | {"output": f"<think>t</think>\n<tool_call>\n{call}\n</tool_call>"}

    assert [Demonstration] == list(map(type, records(row)))
    (problem,) = [one for one in records(called) if isinstance(one, Problem)]
    assert '{"calls":[{"name":"f","parameters":{"a":1}}]}' == problem.answer


def test_calls_that_a_toolrl_thought_mentions_are_not_called():
    called = '<tool_call>\n{"name": "f", "parameters": {"a": %d}}\n</tool_call>'
    mentioned = f"I must answer in <tool_call> tags. At first {called % 1}, better {called % 2}."
    row = {"instruction": "You have tools.", "input": "Hello"}
    answered = row | {"output": f"<think>{mentioned}</think>\n{called % 2}"}
    declined = row | {"output": f"<think>{mentioned}</think>\nNo."}

    (problem,) = [one for one in records(answered) if isinstance(one, Problem)]
    assert '{"calls":[{"name":"f","parameters":{"a":2}}]}' == problem.answer
    assert [Demonstration] == list(map(type, records(declined)))


def test_every_row_of_toolrl_is_read():
    file = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / "toolrl_rlla/sft.jsonl"
    if not file.exists():
        pytest.skip("EACHPROMPT_DATA names no folder with toolrl_rlla")
    found: Counter[str] = Counter()
    for row in read_file("toolrl_rlla", 0, file):
        found.update([row.reason] if isinstance(row, QuarantinedItem) else [i.kind for i in row])

    assert {"demonstration": 400, "problem": 346} == found


FIND = {"name": "find", "description": "Finds.", "parameters": {"x": {"type": "int"}}}
CALL = {"name": "find", "arguments": {"x": 1}}


def called(tools: object, answers: object):
    row = {"id": 5, "query": "Find 1, please.", "tools": tools, "answers": answers}
    return [item.record for item in xlam(RawRow("rows-1", "0" * 64, row))]


@pytest.mark.parametrize("tool", [FIND, {"type": "function", "function": FIND}])
@pytest.mark.parametrize("written", [list, json.dumps])
def test_calls_that_a_row_writes_as_json_are_verified_and_shown(tool, written):
    problem, shown = called(written([tool]), written([CALL, CALL]))

    assert isinstance(problem, Problem)
    call = {"name": "find", "parameters": {"x": 1}}
    assert {"calls": [call, call]} == json.loads(problem.answer)
    assert json.dumps(FIND) in problem.messages[0].content
    assert isinstance(shown, Demonstration)
    assert f"<think></think>{json.dumps(call)}\n{json.dumps(call)}" == shown.response
    (verdict,) = score_batch([problem], [shown.response])
    assert 1.0 == verdict.score


def test_a_request_that_no_function_fits_has_no_demonstration():
    (problem,) = called([FIND], "[]")

    assert isinstance(problem, Problem)
    assert [1.0, 0.0] == [
        verdict.score
        for verdict in score_batch([problem] * 2, ["None of them fits.", json.dumps(CALL)])
    ]


@pytest.mark.parametrize(
    ("tools", "answers"),
    [
        ([FIND], [CALL | {"name": "seek"}]),
        ([FIND], [{"name": "find"}]),
        ([FIND], "find(x=1)"),
        ([FIND], '[{"name": "find", "arguments": {"x": 1, "x": 2}}]'),
        ("find", [CALL]),
    ],
)
def test_calls_that_cannot_be_read_are_refused(tools, answers):
    with pytest.raises(BadRow, match=r"answers|tools"):
        called(tools, answers)
