import json

import pytest

from data_schemas.rows import QuarantinedItem
from tasks.curation.adapters.table import read_file
from tasks.curation.contamination import as_items, decontaminate
from tasks.curation.dedup import deduplicate
from tasks.errors import SettingsError
from tasks.gym.environments.outside import play
from tasks.gym.table import VERIFIERS

ROW = {
    "library": "example",
    "environment": "guess",
    "limit": 3,
    "domain": "tool_use",
    "language": "en",
    "instruction": "Answer with a number.",
}


@pytest.fixture
def read(tmp_path):
    def run(name="environments", **changes):
        path = tmp_path / "rows.jsonl"
        path.write_text(json.dumps(ROW | changes) + "\n", encoding="utf-8")
        (found,) = read_file(name, 0, path)
        return found

    return run


def test_every_task_of_an_environment_is_a_problem(read):
    problems = [item.record for item in read()]

    assert [f"environments/guess/{n}" for n in range(3)] == [one.id for one in problems]
    said = [message.content for message in problems[2].messages]
    assert ["Answer with a number.", "Guess a number from 1 to 20."] == said
    assert VERIFIERS["environment"](problems[2], "3").solved
    assert not VERIFIERS["environment"](problems[2], "2").solved


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"limit": 0}, "bad_limit"),
        ({"arguments": [1]}, "bad_arguments"),
        ({"domain": "chess"}, "malformed"),
        ({"highest": "much"}, "malformed"),
        ({"highest": 0}, "bad_highest"),
        ({"highest": "nan"}, "bad_highest"),
    ],
)
def test_a_row_that_names_no_environment_is_refused(read, changes, reason):
    found = read(**changes)

    assert isinstance(found, QuarantinedItem)
    assert reason == found.reason


def test_a_library_without_an_interpreter_stops_curation(read, monkeypatch):
    """A refusal would be kept in a cache after the interpreter was named."""
    monkeypatch.delenv(play.VARIABLE, raising=False)

    with pytest.raises(SettingsError, match="the interpreter that has it"):
        read(library="verifiers")


def test_an_interpreter_that_does_not_start_is_a_refusal(read, monkeypatch):
    monkeypatch.setenv(play.VARIABLE, "verifiers=false")  # a program that ends at once

    assert "environment_died" == read(library="verifiers").reason
    play.close()


@pytest.mark.parametrize("column", ["id", "question", "involved_classes", "ground_truth"])
def test_a_multi_turn_row_without_a_column_is_refused_before_anything_is_started(read, column):
    row = {"id": "x", "question": [1], "involved_classes": ["MathAPI"], "ground_truth": [[]]}

    assert "missing_field" == read("bfcl_multi_turn", **row | {column: None}).reason


def test_tasks_behind_one_prompt_are_different_items_and_their_rules_are_no_leak(read):
    rules = "Guess it. " * 20
    items = read(limit=12, instruction=rules)
    again = read(limit=13, instruction=rules)

    kept, refused = deduplicate(items, 0.8)
    assert (items, []) == (kept, refused)
    clean, leaked = decontaminate(again, items[:5])
    assert again[5:] == clean
    assert [item.record.id for item in items[:5]] == [one.key for one in leaked]
    earlier = as_items([item.record for item in again])
    assert again[5:] == [
        again[earlier.index(one)] for one in decontaminate(earlier, earlier[:5])[0]
    ]
