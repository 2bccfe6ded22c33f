"""Contest rows: the accepted solution passes in the sandbox, a wrong one does not."""

import base64
import json
import os
import pickle
import zlib

import pytest

from data_schemas.rows import Demonstration, Problem
from tasks.curation.adapters import contests
from tasks.curation.adapters.contests import apps, code_contests, humaneval, livecodebench
from tasks.curation.cleaning.verification import WRONG, verify
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.table import score_batch

DOUBLE = "print(2 * int(input()))"
APPS = {
    "problem_id": 7,
    "question": "Print twice the number.",
    "solutions": json.dumps([DOUBLE, "print(int(input()) ** 2)"]),
    "input_output": json.dumps({"inputs": ["1\n", ["3", ""]], "outputs": ["2\n", ["6"]]}),
    "difficulty": "interview",
    "starter_code": "",
}
CALLED = {"fn_name": "twice", "inputs": [[1], [3]], "outputs": [[2], [6]]}
CONTEST = {
    "name": "76_B. Mice",
    "description": "Print twice the number.",
    "public_tests": {"input": ["1\n"], "output": ["2\n"]},
    "private_tests": {"input": ["3\n"], "output": ["6\n"]},
    "generated_tests": {"input": [], "output": []},
    "solutions": {"language": [2, 3], "solution": ["int main() {}", DOUBLE]},
    "difficulty": 8,
}
TESTS = [{"input": "1\n", "output": "2\n", "testtype": "stdin"}]
LIVE = {
    "question_title": "Twice",
    "question_content": "Print twice the number.",
    "question_id": "abc301_a",
    "contest_date": "2023-05-13T00:00:00",
    "difficulty": "medium",
    "starter_code": "",
    "public_test_cases": json.dumps(TESTS),
    "private_test_cases": json.dumps([{**TESTS[0], "input": "3", "output": "6"}]),
    "metadata": "{}",
}
CALLS = [{"input": "[1, 2]\n3", "output": "[4, 5]", "testtype": "functional"}]
LEETCODE = {
    "starter_code": "class Solution:\n    def shift(self, numbers: List[int], by: int):\n        ",
    "public_test_cases": json.dumps(CALLS),
    "private_test_cases": json.dumps([{**CALLS[0], "input": "[]\n1", "output": "[]"}]),
    "metadata": json.dumps({"func_name": "shift"}),
}
HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(x):\n    """Return 2 * x."""\n',
    "entry_point": "twice",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}


def row(fields: dict[str, object]) -> RawRow:
    return RawRow("rows-1", "0" * 64, fields)


def test_a_wrong_solution_of_a_stdio_task_is_found_by_the_sandbox():
    items = apps(row(APPS))
    kept, refused = verify(items, score_batch)

    assert ["apps/7", "apps/7", "apps/7/2"] == [item.record.id for item in items]
    assert 2 == len(kept)
    assert [("apps/7/2", WRONG)] == [(one.key, one.reason) for one in refused]


def test_a_task_of_one_function_is_called_with_its_outputs_unwrapped():
    program = "def twice(x):\n    return 2 * x"
    fields = {"input_output": json.dumps(CALLED), "solutions": json.dumps([program])}
    kept, refused = verify(apps(row(APPS | fields)), score_batch)

    assert (2, []) == (len(kept), refused)
    assert "Write the Python function twice." in kept[0].record.prompt_text


def test_all_tests_of_a_contest_count_and_only_its_python_3_is_shown():
    problem, shown = code_contests(row(CONTEST))

    assert isinstance(problem.record, Problem)
    assert isinstance(shown.record, Demonstration)
    gold = json.loads(problem.record.answer)
    assert ["1\n", "3\n"] == [case["stdin"] for case in gold["cases"]]
    assert (DOUBLE, 8) == (gold["reference"], problem.record.level)
    assert [] == verify([problem, shown], score_batch)[1]


def test_a_humaneval_function_is_completed():
    (item,) = humaneval(row(HUMANEVAL))

    assert isinstance(item.record, Problem)
    reference = json.loads(item.record.answer)["reference"]
    answers = [reference, reference.replace("return 2", "return 3")]
    assert "humaneval/HumanEval/0" == item.record.id
    assert [1.0, 0.0] == [one.score for one in score_batch([item.record] * 2, answers)]


def test_a_prompt_that_begins_no_function_is_not_asked_to_be_completed():
    with pytest.raises(BadRow, match="bad_prompt"):
        humaneval(row(HUMANEVAL | {"prompt": "from typing import *", "entry_point": "S().f"}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"input_output": ""}, "no_gold"),
        ({"input_output": '{"inputs": [], "outputs": []}'}, "no_gold"),
        ({"input_output": '{"inputs": ["1"], "outputs": ["1", "2"]}'}, "bad_gold"),
        ({"input_output": "{"}, "bad_gold"),
    ],
)
def test_a_task_without_tests_is_refused(changes, reason):
    with pytest.raises(BadRow, match=reason):
        apps(row(APPS | changes))


def packed(value: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def answer(problem: Problem, program: str) -> bool:
    (verdict,) = score_batch([problem], [f"<think></think>```python\n{program}\n```"])
    return verdict.solved


def test_public_and_private_tests_of_livecodebench_count():
    (item,) = livecodebench(row(LIVE))

    assert isinstance(item.record, Problem)
    assert ("livecodebench/abc301_a", 2) == (item.record.id, item.record.level)
    assert item.record.prompt_text.startswith("Twice\nPrint twice the number.")
    assert answer(item.record, DOUBLE)
    assert not answer(item.record, "print(2)")  # the private test


def test_a_task_of_a_class_is_called_by_its_method_with_an_argument_per_line():
    (item,) = livecodebench(row(LIVE | LEETCODE))
    program = LEETCODE["starter_code"] + "return [number + by for number in numbers]"

    assert isinstance(item.record, Problem)
    assert "Write the Python function Solution.shift." in item.record.prompt_text
    assert answer(item.record, f"from typing import List\n{program}")
    assert not answer(item.record, f"from typing import List\n{program}[:1]")


def test_packed_tests_are_those_that_are_written_as_json():
    private = packed(LIVE["private_test_cases"])

    assert livecodebench(row(LIVE))[0].record == (
        livecodebench(row(LIVE | {"private_test_cases": private}))[0].record
    )


class Call:
    """Imports a name when it is unpickled."""

    def __reduce__(self):
        return os.getcwd, ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"private_test_cases": packed(Call())}, "bad_gold"),
        ({"private_test_cases": packed(7)}, "bad_gold"),
        ({"private_test_cases": packed(["[]", "[]"])}, "bad_gold"),
        ({"private_test_cases": packed("[" * 100_000)}, "bad_gold"),
        ({"public_test_cases": "[" * 100_000}, "bad_gold"),
        ({"private_test_cases": packed("[]" + 2**12 * " ")}, "bad_gold"),  # longer than allowed
        ({"private_test_cases": packed('{"input": ""}')}, "bad_gold"),
        ({"private_test_cases": "no base64"}, "bad_gold"),
        ({"private_test_cases": base64.b64encode(b"no zlib").decode()}, "bad_gold"),
        ({"public_test_cases": json.dumps(CALLS)}, "no_gold"),  # two kinds of tests
        (LEETCODE | {"metadata": "{}"}, "no_gold"),
        ({"private_test_cases": ""}, "empty_field"),
    ],
)
def test_tests_that_cannot_be_read_are_refused_and_nothing_is_imported(fields, reason, monkeypatch):
    monkeypatch.setattr(contests, "MAX_TESTS_BYTES", 2**12)
    with pytest.raises(BadRow) as refused:
        livecodebench(row(LIVE | fields))

    assert reason == refused.value.reason
