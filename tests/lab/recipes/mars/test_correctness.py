import json
from pathlib import Path

import pytest

from tasks.lab.recipes.mars.correctness import NAME, says_correct, verify

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())["verdict_parse"]
READ = {"ok": True, "error": False, "abstain": None}


@pytest.fixture
def asked(problem):
    """A verdict is asked for on a solution of this state."""

    def make(correct):
        gold = json.dumps({"correct": correct})
        return problem(NAME, gold)

    return make


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["text"][:20] or "empty")
def test_the_last_closed_line_is_the_verdict(row):
    assert READ[row["closed"]] is says_correct(row["text"])


@pytest.mark.parametrize("correct", [True, False])
def test_a_verdict_scores_by_the_true_state_of_its_input(asked, correct):
    scores = {
        word: verify(asked(correct), f"<think>36</think>It is 36.\nCorrectness: {word}").score
        for word in ("Correct", "Wrong")
    }

    assert {"Correct": float(correct), "Wrong": float(not correct)} == scores


def test_a_response_without_a_verdict_is_wrong_and_not_left_out(asked):
    """An abstention would let the policy avoid a wrong verdict by writing none."""
    for correct in (True, False):
        verdict = verify(asked(correct), "It is not correct.")
        assert (0.0, "no_verdict") == (verdict.score, verdict.reason)


def test_a_verdict_in_the_thought_does_not_count(asked):
    said = "<think>\nCorrectness: Correct\n</think>I am not sure."

    assert "no_verdict" == verify(asked(True), said).reason


def test_a_gold_that_cannot_be_read_is_an_abstention(asked):
    assert "bad_gold" == verify(asked("yes"), "Correctness: Correct").reason
