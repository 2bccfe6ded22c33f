"""Why two verdicts on a response differ; the harness itself runs in an environment of its own."""

import pytest

from data_schemas.verdicts import scored
from tests.bench.harness.command import explain
from tests.bench.harness.responses import Recorded
from tests.evaluation.conftest import make_problem

__all__ = ["make_problem"]
RIGHT, WRONG = scored(1.0, "correct"), scored(0.0, "wrong")
CAPITALS = {"instruction_id_list": ["change_case:english_capital"], "kwargs": [{}]}
ADDED = {"entry_point": "f"}
EXCLAMATION = {"instruction_id_list": ["keywords:letter_frequency"], "kwargs": [{"letter": "!"}]}


@pytest.mark.parametrize(
    ("name", "ours", "found", "response", "doc", "why"),
    [
        ("strict-match", RIGHT, (False, "[invalid]"), "#### 7", {}, "finds no answer"),
        ("strict-match", WRONG, (True, "7"), "The answer is 7.", {}, ""),
        ("get-answer", RIGHT, (False, "1"), "the answer is 17", {}, "drops the last character"),
        ("flexible-extract", RIGHT, (False, "3"), "17 in 3 days", {}, "takes the last number"),
        ("flexible-extract", WRONG, (True, "17"), "3 of 17", {}, "states another answer"),
        ("strict", RIGHT, (False, ""), "HELLO", CAPITALS, "langdetect"),
        ("strict", RIGHT, (False, ""), "! !", EXCLAMATION, "draws another letter"),
        ("strict", RIGHT, (False, ""), "hello", {}, ""),
        ("create_test", RIGHT, (False, ""), "```\ndef f(): ...\n```", ADDED, "around the program"),
        ("create_test", RIGHT, (False, ""), "def f(): ...", ADDED, ""),
        ("create_test", WRONG, (True, ""), "    return 1", ADDED, "continues the prompt"),
        ("create_test", WRONG, (True, ""), "def f(): ...", ADDED, ""),
    ],
)
def test_a_difference_has_a_reason_only_if_the_reason_holds(
    make_problem, name, ours, found, response, doc, why
):
    row = Recorded("suite", make_problem("a"), "task", "so #### 17", response, doc)

    given = explain(row, name, ours, {name: found})

    assert why in given
    assert bool(why) == bool(given)


def test_a_loose_verdict_is_explained_where_the_strict_one_agrees(make_problem):
    row = Recorded("IFEval", make_problem("a"), "ifeval", "", "text", {})
    loose = (True, "")

    assert "strict" in explain(row, "loose", WRONG, {"strict": (False, ""), "loose": loose})
    assert not explain(row, "loose", WRONG, {"strict": (True, ""), "loose": loose})
