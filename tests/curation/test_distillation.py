"""A teacher's right answers become rows that curation reads, verifies and imitates."""

import json

import pytest

from data_schemas.rows import Demonstration
from data_schemas.settings import GradingSettings
from tasks.curation.adapters.table import read_file
from tasks.curation.cleaning.verification import verify
from tasks.curation.distillation import (
    DEMONSTRATIONS_FILE,
    REPORT,
    checkpoint_teacher,
    distil,
    endpoint_teacher,
)
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.errors import DataError
from tasks.gym.judging.scripted import ScriptedJudge
from tasks.gym.table import score_batch

SETTINGS = GradingSettings(samples=5)
SAID = (
    "<think>3+4 = 7, which is right</think>7",
    "<think>3+4=8</think>8",
    "<think>3+4=7</think>7",
    "<think>3+4=7</think>7",
    "<think>7</think>7 and then much more " + "than fits " * 40,
)
"""Two different right answers, a wrong one, a repetition, and one that the limit cuts."""


@pytest.fixture
def problems(make_problem):
    return [make_problem(key, f"{key}: 3+4?").record for key in ("easy", "odd")]


@pytest.fixture
def engine(tokenizer):
    def answer(prompt, sample):
        return SAID[sample] if "easy" in prompt else "<think></think>9"

    return ScriptedRolloutEngine(tokenizer, answer)


def rows(folder):
    return [json.loads(line) for line in (folder / DEMONSTRATIONS_FILE).read_text().splitlines()]


@pytest.mark.parametrize(("keep", "kept"), [(1, [2]), (2, [2, 0]), (9, [2, 0])])
def test_the_shortest_right_answers_are_kept(tmp_path, tokenizer, engine, problems, keep, kept):
    teacher = checkpoint_teacher(SETTINGS, engine, tokenizer)

    facts = distil(SETTINGS, problems, "expert", teacher, score_batch, keep, tmp_path)

    assert [SAID[sample] for sample in kept] == [row["response"] for row in rows(tmp_path)]
    assert [f"test/easy/expert/{place}" for place in range(1, len(kept) + 1)] == [
        row["id"] for row in rows(tmp_path)
    ]
    expected = {"teacher": "expert", "problems": 2, "responses": 4, "right": 2}
    assert {**expected, "demonstrations": len(kept)} == facts
    report = json.loads((tmp_path / REPORT).read_text())
    assert {"maths": {"problems": 2, "responses": 4, "right": 2}} == report["domains"]


def test_what_is_written_is_a_source_of_verified_demonstrations(
    tmp_path, tokenizer, engine, problems
):
    teacher = checkpoint_teacher(SETTINGS, engine, tokenizer)
    distil(SETTINGS, problems, "expert", teacher, score_batch, 2, tmp_path)

    found = list(read_file("prompt_jsonl", 0, tmp_path / DEMONSTRATIONS_FILE))
    shown = [item for row in found for item in row if isinstance(item.record, Demonstration)]
    kept, refused = verify(shown, score_batch)

    assert 2 == len(kept)
    assert [] == refused
    assert all(item.answers is not None for item in kept)
    assert problems[0].messages == kept[0].record.messages


def test_an_endpoint_answers_each_problem_once_and_may_fail(tmp_path, problems):
    replies = {"easy: 3+4?": "<thinking>3+4</thinking>7", "odd: 3+4?": None}
    judge = ScriptedJudge(replies.__getitem__)

    facts = distil(SETTINGS, problems, "far", endpoint_teacher(judge), score_batch, 3, tmp_path)

    assert ["<think>3+4</think>7"] == [row["response"] for row in rows(tmp_path)]
    assert (1, 1) == (facts["responses"], facts["right"])


def test_a_teacher_that_is_never_right_is_named_with_the_reasons(tmp_path, problems):
    teacher = endpoint_teacher(ScriptedJudge(lambda prompt: "8"))

    with pytest.raises(DataError, match=r"none of 2 different responses of hasty .*\(wrong 2\)"):
        distil(SETTINGS, problems, "hasty", teacher, score_batch, 1, tmp_path)
