import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import DataError
from tasks.gym.judging.comparison_prompt import Label
from tasks.training.judge.pairs import (
    ComparisonPair,
    majority,
    read_pairs,
    split_by_task,
    task_key,
)

PANDALM = {
    "idx": 0,
    "instruction": "Rewrite.",
    "input": "A text.",
    "response1": "One",
    "response2": False,
    "annotator1": 2,
    "annotator2": 0,
    "annotator3": 2,
}
LLMBAR = {"input": "Say hi.", "output_1": "hi", "output_2": "ho", "label": "1"}


def pair(number, task):
    return ComparisonPair(
        id=str(number), task=task, answer_a="a", answer_b="b", label=Label.A, annotators=()
    )


def write(path, *rows):
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_pandalm_counts_zero_as_a_tie_and_the_majority_is_the_label(tmp_path):
    ((found,), left_out) = read_pairs([write(tmp_path / "p.jsonl", PANDALM)])

    assert ("Rewrite.\nA text.", "One", "False") == (found.task, found.answer_a, found.answer_b)
    assert Label.B is found.label
    assert (Label.B, Label.TIE, Label.B) == found.annotators
    assert not left_out


def test_llmbar_is_read_from_lines_and_from_a_list(tmp_path):
    (tmp_path / "list.json").write_text(json.dumps([LLMBAR]))
    pairs, left_out = read_pairs([write(tmp_path / "l.jsonl", LLMBAR), tmp_path / "list.json"])

    assert [("llmbar/l/1", Label.A)] == [(found.id, found.label) for found in pairs]
    assert {"duplicate": 1} == left_out


@pytest.mark.parametrize(
    "again",
    [
        PANDALM | {"idx": 1},
        PANDALM | {"idx": 1, "response1": False, "response2": "One", "annotator2": 1},
    ],
)
def test_the_same_answers_of_other_models_are_another_comparison(tmp_path, again):
    pairs, left_out = read_pairs([write(tmp_path / "p.jsonl", PANDALM, again)])

    assert ["pandalm/p/1", "pandalm/p/2"] == [found.id for found in pairs]
    assert not left_out


def test_every_row_of_pandalm_with_a_majority_is_kept():
    file = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / "pandalm_human/testset_0-499.jsonl"
    if not file.exists():
        pytest.skip(f"EACHPROMPT_DATA names no folder with {file.name}")

    pairs, left_out = read_pairs([file])

    assert 500 == len(pairs) + left_out["no_majority"]
    assert left_out.keys() <= {"no_majority"}


def test_a_line_separator_inside_an_answer_does_not_end_the_row(tmp_path):
    row = json.dumps(LLMBAR | {"output_1": "a\u2028b"}, ensure_ascii=False)
    (tmp_path / "l.jsonl").write_text(row, encoding="utf-8")

    ((found,), _) = read_pairs([tmp_path / "l.jsonl"])

    assert "a\u2028b" == found.answer_a


def test_three_votes_for_three_labels_are_left_out_and_counted(tmp_path):
    pairs, left_out = read_pairs([write(tmp_path / "p.jsonl", PANDALM | {"annotator1": 1})])

    assert [] == pairs
    assert {"no_majority": 1} == left_out
    assert majority([Label.A, Label.B]) is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (LLMBAR | {"label": 0}, r"row 2: label is missing or wrong\. Use rows of PandaLM"),
        ({"prompt": "x"}, "row 2: input, output_1, output_2, label is missing"),
        (PANDALM | {"annotator2": 3}, "row 2: annotator2 is missing or wrong"),
    ],
)
def test_a_row_of_neither_format_is_named(tmp_path, row, message):
    with pytest.raises(DataError, match=message):
        read_pairs([write(tmp_path / "bad.jsonl", LLMBAR, row)])


def test_a_missing_file_and_a_file_that_is_no_json_are_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.jsonl cannot be read"):
        read_pairs([tmp_path / "none.jsonl"])
    (tmp_path / "text.jsonl").write_text("hello")
    with pytest.raises(DataError, match=r"text\.jsonl is not JSON lines or a JSON list"):
        read_pairs([tmp_path / "text.jsonl"])


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=2).filter(lambda tasks: len(set(tasks)) > 1),
    st.integers(0, 9),
)
def test_no_task_is_on_both_sides_whatever_its_spelling_and_no_pair_is_lost(tasks, seed):
    rows = [pair(n, f" {task}  X" if n % 2 else f"{task} x") for n, task in enumerate(tasks)]

    training, held_out = split_by_task(rows, seed)

    sides = [{task_key(row.task) for row in side} for side in (training, held_out)]
    assert not sides[0] & sides[1]
    assert all(sides)
    assert {row.id for row in rows} == {row.id for row in training + held_out}


def test_one_task_cannot_be_split():
    with pytest.raises(DataError, match="1 comparisons of 1 tasks cannot be split"):
        split_by_task([pair(0, "only")], seed=0)


@pytest.mark.skipif("EACHPROMPT_DATA" not in os.environ, reason="EACHPROMPT_DATA is not set")
def test_the_published_majorities_are_ours_and_the_adversarial_pairs_have_no_ties():
    data = Path(os.environ["EACHPROMPT_DATA"])
    (pandalm,) = (data / "pandalm_human").glob("*.jsonl")
    lines = pandalm.read_text(encoding="utf-8").strip().split("\n")
    published = [json.loads(line)["majority"] for line in lines]

    pairs, left_out = read_pairs([pandalm])
    llmbar, _ = read_pairs(sorted((data / "llmbar").glob("*.jsonl")))

    assert len(published) == len(pairs) + left_out.total()
    for found in pairs:
        assert published[int(found.id.rpartition("/")[2]) - 1].upper() == found.label.value
    assert llmbar
    assert Label.TIE not in {found.label for found in llmbar}
