"""Rows of tool use."""

from data_schemas.demonstrations import Demonstration
from data_schemas.prompts import Problem
from tasks.curation.adapters.tools import toolrl_rlla
from tasks.curation.rows import RawRow


def records(row):
    return [item.record for item in toolrl_rlla(RawRow("rows-1", "0" * 64, row))]


def test_toolrl_rows_without_calls_are_demonstrations_only():
    row = {"instruction": "You have tools.", "input": "Hello", "output": "<think>t</think>Hi"}
    call = '{"name": "f", "parameters": {"a": 1}}'
    called = row | {"output": f"<think>t</think>\n<tool_call>\n{call}\n</tool_call>"}

    assert [Demonstration] == list(map(type, records(row)))
    (problem,) = [one for one in records(called) if isinstance(one, Problem)]
    assert '{"calls":[{"name":"f","parameters":{"a":1}}]}' == problem.answer
