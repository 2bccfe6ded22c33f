"""The five nights of the demonstration, decided without training."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from data_schemas.drift import Drift
from data_schemas.intake import CurationCounts, IntakeOutcome
from data_schemas.presets import NIGHTLY_DEMO
from tasks.curation import sample_world
from tasks.curation.marketplace.drawing import DRAWERS
from tasks.errors import SettingsError
from tasks.retraining import demo, worth
from tasks.retraining.inbox import list_files
from tasks.retraining.suspicion import FileRows

STABLE = Drift(known=100, new=60, fields=(), unknown_words=0.0)


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_first_night_has_problems_of_all_domains_with_solutions(tmp_path):
    (monday,) = demo.drop(demo.GOOD, str(tmp_path))

    found = rows(tmp_path / monday)
    assert len(DRAWERS) * demo.NUM_ROWS == len(found) == len({row["prompt"] for row in found})
    assert all(row["response"].startswith("<think>") for row in found)
    assert len(found) >= NIGHTLY_DEMO.min_rows


def test_the_second_night_has_a_mapping_and_no_english(tmp_path):
    demo.drop(demo.DRIFT, str(tmp_path))
    (file,) = list_files(str(tmp_path)).files

    assert file.mapping is not None
    assert ("quiz/tuesday.jsonl", "shop_quiz") == (file.key, file.mapping.name)
    assert "en" not in {row["locale"] for row in rows(tmp_path / file.key)}


@pytest.mark.slow
def test_the_poisoned_night_contradicts_known_rows_and_needs_people(tmp_path):
    (wednesday,) = demo.drop(demo.POISON, str(tmp_path))
    found = rows(tmp_path / wednesday)
    sample_world.generate(NIGHTLY_DEMO.curation.seed, tmp_path)
    known = {}
    for line in (tmp_path / sample_world.PROBLEMS).read_text().splitlines():
        with suppress(json.JSONDecodeError):  # the world has truncated lines on purpose
            row = json.loads(line)
            known[row["question"]] = row.get("answer")
    contradicted = sum(known.get(row["prompt"]) not in (None, row["answer"]) for row in found)
    fault = FileRows(len(found), 0, {}, len(found), contradicted).fault
    counted = CurationCounts(rows=len(found), problems=0, fresh=0, refused={})

    decision = worth.decide_grading(
        NIGHTLY_DEMO, "1 file", counted, STABLE, {"wednesday.jsonl": fault}
    )

    assert contradicted > 0.9 * len(found)
    assert (IntakeOutcome.PEOPLE, ("wednesday.jsonl",)) == (decision.outcome, decision.held)


def test_no_row_of_the_bad_night_can_be_read(tmp_path):
    (thursday,) = demo.drop(demo.BAD, str(tmp_path))

    for line in (tmp_path / thursday).read_text().splitlines():
        with pytest.raises(json.JSONDecodeError):
            json.loads(line)


def test_the_last_night_brings_nothing_and_there_is_no_sixth(tmp_path):
    assert [] == demo.drop(demo.NOTHING, str(tmp_path))
    with pytest.raises(SettingsError, match="choose from good rows, drift"):
        demo.drop("saturday", str(tmp_path))


def test_the_nights_come_to_an_inbox_in_s3_as_well(bucket):
    for night in demo.NIGHTS:
        demo.drop(night, "s3://bucket/demo/inbox")

    found = [file.key for file in list_files("s3://bucket/demo/inbox").files]
    assert ["monday.jsonl", "quiz/tuesday.jsonl", "thursday.jsonl", "wednesday.jsonl"] == found
