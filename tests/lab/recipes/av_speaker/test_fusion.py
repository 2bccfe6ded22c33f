"""Strict letters and paired gains against the worked example."""

import json
from pathlib import Path

import pytest

from tasks.errors import DataError
from tasks.lab.recipes.av_speaker.fusion import (
    SpeakerAnswer,
    as_json,
    fusion,
    read_answers,
    strict_letter,
)

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


def run(*responses):
    return {
        str(place): SpeakerAnswer(id=str(place), answer="A", response=response)
        for place, response in enumerate(responses)
    }


@pytest.mark.parametrize("example", VECTORS["parse"], ids=lambda one: repr(one["text"]))
def test_the_last_line_names_a_letter_or_there_is_no_answer(example):
    assert example["strict"] == (strict_letter(example["text"]) or "abstain")


@pytest.mark.parametrize("text", ["**B**", "B.", "Answer: (B)", "The answer is B.", "x\n\n B \n"])
def test_other_ways_to_name_a_letter(text):
    assert "B" == strict_letter(text)


@pytest.mark.parametrize("text", ["A or B", "the answer is a man", "B\nI am not sure.", "AB"])
def test_what_names_no_single_letter_is_no_answer(text):
    assert strict_letter(text) is None


def test_a_missing_answer_is_neither_drawn_nor_the_first_option():
    counts = VECTORS["accounting"]
    responses = ["A"] * counts["right"] + ["B"] * counts["wrong"] + ["?"] * counts["unparsed"]
    found = fusion(run(*responses), {}).runs["both"]

    assert (counts["items"], counts["right"] + counts["wrong"]) == (found.questions, found.answered)
    assert counts["strict"] == pytest.approx(found.strict.mean)
    assert counts["of_answered"] == pytest.approx(found.of_answered, abs=2e-6)


def test_the_gain_is_paired_and_given_in_both_ways():
    accuracy = VECTORS["fusion"]["accuracy"]
    runs = {
        name: run(*["A"] * int(share) + ["B"] * (100 - int(share)))
        for name, share in accuracy.items()
    }
    both = runs.pop("audio_visual")
    gains = {gain.over: gain for gain in fusion(both, runs).gains}

    assert VECTORS["fusion"]["over_visual"] == pytest.approx(100 * gains["visual"].strict.mean)
    better = min(gain.strict.mean for gain in gains.values())
    assert VECTORS["fusion"]["over_better_single"] == pytest.approx(100 * better)


def test_questions_without_an_answer_count_as_wrong_in_one_gain_and_not_in_the_other():
    (gain,) = fusion(run("A", "A", "B", "?"), {"video": run("A", "?", "A", "B")}).gains

    assert 0.0 == gain.strict.mean
    assert gain.of_answered is not None
    assert (2, -0.5) == (gain.answered_in_both, gain.of_answered.mean)
    (nothing,) = fusion(run("?"), {"video": run("A")}).gains
    assert nothing.of_answered is None
    assert json.loads(as_json(fusion(run("A"), {"video": run("B")})))["gains"][0]["over"] == "video"


def test_runs_of_other_questions_and_rows_that_are_no_answers_are_refused():
    with pytest.raises(DataError, match=r"'both' and 'video' differ in 1 questions .* '1'"):
        fusion(run("A", "A"), {"video": run("A")})
    row = '{"id": "q", "answer": "A", "response": null}'
    assert read_answers(row, "file")["q"].response is None
    said = row.replace("null", '"two\u2028lines"') + "\n\n"  # a separator of str.splitlines
    assert "two\u2028lines" == read_answers(said, "file")["q"].response
    for text, message in (
        ("", "has no answers"),
        (f"{row}\n{row}", "line 2: question 'q' is answered twice"),
        (row.replace('"A"', '"E"'), "line 1: answer"),
    ):
        with pytest.raises(DataError, match=message):
            read_answers(text, "file")
