import json
from pathlib import Path

import pytest

from data_schemas.arrow import read_table
from data_schemas.rows import Demonstration, Parent
from data_schemas.settings import SFTSettings
from tasks.engines.chat import load_tokenizer
from tasks.formats.readiness import demonstrations_of
from tasks.gym.judging.comparison_prompt import Label, comparison_prompt, parse_label, sections
from tasks.training.foundation.base import shipped_base
from tasks.training.judge import collection
from tasks.training.judge.collection import (
    both_orders,
    collect,
    read_collection,
    settings_for_judge,
)
from tasks.training.judge.pairs import ComparisonPair, task_key

SETTINGS = SFTSettings()


@pytest.fixture
def rows(tmp_path) -> Path:
    """Ten tasks in LLMBar's form; the answers of one are too long for the shipped model."""
    path = tmp_path / "rows.jsonl"
    lines = [
        {"input": f"Task {n}", "output_1": f"good {n}", "output_2": "bad", "label": 1}
        for n in range(9)
    ]
    lines.append({"input": "Long", "output_1": "word " * 200, "output_2": "b", "label": 2})
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_both_orders_teach_the_same_verdict():
    pair = ComparisonPair(
        id="p", task="t", answer_a="x", answer_b="y", label=Label.A, annotators=()
    )

    first, second = both_orders(pair)

    assert comparison_prompt("t", "x", "y") == first.messages
    assert comparison_prompt("t", "y", "x") == second.messages
    assert (Label.A, Label.B) == tuple(parse_label(row.response) for row in (first, second))


def test_an_analysis_comes_before_the_verdict_and_follows_its_answer():
    pair = ComparisonPair(
        id="p",
        task="t",
        answer_a="x",
        answer_b="y",
        label=Label.A,
        annotators=(),
        requirements="a title",
        analysis_a="has one",
        analysis_b="has none",
    )

    first, second = (json.loads(row.response) for row in both_orders(pair))

    assert {
        "requirements": "a title",
        "analysis_a": "has one",
        "analysis_b": "has none",
        "comparison": "A is better",
        "label": "A",
    } == first
    assert list(first)[-1] == "label"
    assert ("has none", "has one") == (second["analysis_a"], second["analysis_b"])
    assert ("B is better", "B") == (second["comparison"], second["label"])


def test_a_tie_stays_a_tie_in_the_other_order():
    pair = ComparisonPair(
        id="p", task="t", answer_a="x", answer_b="y", label=Label.TIE, annotators=()
    )

    assert {Label.TIE} == {parse_label(row.response) for row in both_orders(pair)}


def test_no_held_out_task_is_taught_and_what_is_too_long_is_counted(rows, tmp_path):
    out = tmp_path / "out"
    out.mkdir()

    facts = collect(SETTINGS, [rows], shipped_base(), out)

    training, held_out = read_collection(out)
    taught = read_table(out / "demonstrations.parquet", Demonstration)
    prompts = {task_key(sections(row.prompt_text)["Task"]) for row in taught}
    assert prompts == {task_key(pair.task) for pair in training}
    assert not prompts & {task_key(pair.task) for pair in held_out}
    assert (7, 2, 1) == tuple(
        facts[name] for name in ("training_pairs", "held_out_pairs", "left_out/too_long")
    )
    assert 2 * len(training) == len(demonstrations_of(Parent.JUDGE, taught))


@pytest.mark.slow
def test_a_reply_that_the_judge_has_no_room_for_is_not_taught(tmp_path, monkeypatch):
    monkeypatch.setattr(collection, "REPLY_SHARE", 6)
    out = tmp_path / "out"
    out.mkdir()

    collect(SETTINGS, [], shipped_base(), out)

    tokenizer = load_tokenizer(shipped_base())
    taught = read_table(out / "demonstrations.parquet", Demonstration)
    longest = max(len(row) for row in tokenizer([row.response for row in taught]).input_ids)
    assert longest < 512 // 6
    assert json.loads((out / "left_out.json").read_bytes())["too_long"] > 0


def test_the_validation_loss_alone_chooses_the_judge():
    low, high = settings_for_judge(SETTINGS).entropy_window

    assert low == 0.0
    assert high > 100.0
