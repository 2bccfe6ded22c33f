"""Counts of a curated set."""

import json

import pytest

from data_schemas.arrow import write_table
from data_schemas.rows import HELD_OUT, Domain, Problem
from tasks.curation.curate import REPORT
from tasks.errors import DataError
from tests.bench.set_counts import counts, main
from tests.records import problem_of


def problem(name, source, language):
    return problem_of(
        "Which?",
        '{"value": "A"}',
        id=name,
        domain=Domain.CHOICE,
        language=language,
        verifier="choice",
        source=source,
    )


@pytest.fixture
def store(tmp_path):
    curated = tmp_path / "objects" / "0"
    curated.mkdir(parents=True)
    rows = [("1", "wild", "ms"), ("2", "wild", "fil"), ("3", "wild", "fil"), ("4", "shop", "ms")]
    write_table(curated / HELD_OUT, Problem, [problem(*row) for row in rows])
    source = {
        "items": 5,
        "rows": 4,
        "kept": {"held_out": 3, "problems": 0, "demonstrations": 0},
        "dropped": {"duplicate": 1},
        "quarantined": {"empty_field": 1},
    }
    report = {"sources": {"wild": source}, "thinking_languages": {}}
    (curated / REPORT).write_text(json.dumps(report))
    return tmp_path


def test_suites_are_counted_by_language_and_what_is_left_out_by_reason(store):
    found = counts(store / "objects" / "0")

    assert {"wild": {"fil": 2, "ms": 1}, "shop": {"ms": 1}} == found["held_out"]
    assert {"duplicate": 1, "empty_field": 1} == found["sources"]["wild"]["left_out"]
    assert 5 == found["sources"]["wild"]["items"]


def test_a_file_of_counts_says_what_made_it_and_a_store_of_several_sets_is_refused(store):
    main([str(store), "eachprompt curate", "--out", str(store / "out.json")])

    written = json.loads((store / "out.json").read_text())
    assert "eachprompt curate" == written["command"]
    assert {"tasks.curation.curate"} == {*written["code"]}
    (store / "objects" / "0").rename(store / "objects" / "1")
    (store / "objects" / "0").mkdir()
    (store / "objects" / "0" / HELD_OUT).write_bytes(b"")
    with pytest.raises(DataError, match="has 2 curated sets; name a store with one"):
        main([str(store), "eachprompt curate", "--out", str(store / "out.json")])
