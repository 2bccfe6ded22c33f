"""The curation funnel."""

import json

import pytest

from tasks.errors import DataError
from tasks.pages.curation_section import funnel_lines, funnel_note, read_curation


@pytest.fixture
def curated(tmp_path):
    sources = {
        "mbpp": {
            "rows": 10,
            "items": 20,
            "kept": {"problems": 5, "demonstrations": 0, "held_out": 1},
            "dropped": {"duplicate": 3, "prompt_too_long": 9},
            "quarantined": {"not_json": 2},
        }
    }
    (tmp_path / "report.json").write_text(json.dumps({"sources": sources}))
    return tmp_path


def test_lines_go_from_read_to_quarantined_largest_reason_first(curated):
    lines = funnel_lines(read_curation(curated))

    assert [
        ("mbpp", "items read", "20", 100.0),
        ("", "problems to learn from", "5", 25.0),
        ("", "held out for evaluation", "1", 5.0),
        ("", "dropped: prompt too long", "9", 45.0),
        ("", "dropped: duplicate", "3", 15.0),
        ("", "quarantined: not json", "2", 10.0),
    ] == [(line.source, line.label, line.count, line.width) for line in lines]


def test_what_people_decided_and_models_solved_is_part_of_the_funnel(curated):
    report = json.loads((curated / "report.json").read_text())
    report["sources"]["mbpp"]["decisions"] = {"keep": 2, "correct": 4}
    report["sources"]["mbpp"]["solve_rates"] = {"matched": 5, "unmatched": 1}
    (curated / "report.json").write_text(json.dumps(report))

    *_, correct, keep, matched, unmatched = funnel_lines(read_curation(curated))

    assert [
        ("people decided: correct", "4"),
        ("people decided: keep", "2"),
        ("solve rates: matched", "5"),
        ("solve rates: unmatched", "1"),
    ] == [(line.label, line.count) for line in (correct, keep, matched, unmatched)]


def test_the_note_adds_up(curated):
    assert "20 items from 10 rows; 12 dropped (sound, but not wanted here), 2 quarantined" in (
        funnel_note(read_curation(curated))
    )


def test_a_report_of_another_kind_is_refused(tmp_path):
    (tmp_path / "report.json").write_text('{"model": "x"}')

    with pytest.raises(DataError, match=r"report.json: sources: Field required"):
        read_curation(tmp_path)
