"""Which files people must look at."""

import pytest

from data_schemas.arrow import write_table
from data_schemas.intake import InboxFile
from data_schemas.rows import (
    DEMONSTRATIONS,
    PROBLEMS,
    QUARANTINE,
    ROWS,
    Demonstration,
    ItemKind,
    Outcome,
    Problem,
    QuarantinedItem,
)
from data_schemas.sources import RowPlace
from tasks.retraining.suspicion import FileRows, conflicts, strangers, suspects
from tests.records import problem_of


def problem(number, value):
    return problem_of(
        f"Question {number}?",
        f'{{"value":"{value}"}}',
        id=f"p{number}",
        source="shop",
        source_row=f"{number:064d}",
    )


def rows(total=100, unusable=0, problems=100, contradictions=0) -> FileRows:
    return FileRows(total, unusable, {"not_json": unusable}, problems, contradictions)


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        (rows(unusable=50), ""),
        (FileRows(100, 4, {"not_json": 4}, 96, 0), ""),
        (FileRows(1, 1, {"not_json": 1}, 0, 0), "1 of 1 rows cannot be used: not_json 1"),
        (FileRows(0, 0, {}, 0, 0), ""),
        (FileRows(21, 1, {"damaged_file": 1}, 20, 0), "1 of 21 rows cannot be used: damaged_file"),
        (FileRows(9, 1, {"unknown_suffix": 1}, 8, 0), "1 of 9 rows cannot be used: unknown_suffix"),
        (FileRows(5, 5, {"not_json": 5}, 0, 0), "5 of 5 rows cannot be used: not_json 5"),
        (
            FileRows(9, 9, {"comparison": 9}, 0, 0),
            "9 of 9 rows cannot be used: comparison 9 (comparisons of answers train a judge, which "
            "a night does not: eachprompt judge --files",
        ),
        (rows(unusable=51), "51 of 100 rows cannot be used: not_json 51"),
        (rows(contradictions=19), ""),
        (rows(contradictions=20), "20 of 100 problems have another answer than the same question"),
        (rows(problems=10, contradictions=4), ""),
        (rows(problems=10, contradictions=5), "5 of 10 problems have another answer"),
    ],
)
def test_the_limits_are_those_that_are_documented(file, fault):
    assert file.fault.startswith(fault)
    assert bool(fault) == bool(file.fault)


def test_every_file_is_judged_by_its_own_rows(tmp_path):
    places, problems, refused = [], [], []
    for name, numbers in (("good", range(10)), ("bad", range(10, 20)), ("poison", range(20, 30))):
        for place, number in enumerate(numbers, start=1):
            places.append(RowPlace(source_row=f"{number:064d}", file=name, number=place))
            if name != "poison":  # of a good row the demonstration is refused, the problem is not
                refused.append(
                    QuarantinedItem(
                        stage="read",
                        outcome=Outcome.QUARANTINED,
                        kind=ItemKind.ROW,
                        source="shop",
                        key=str(number),
                        reason="missing_column",
                        source_row=f"{number:064d}",
                    )
                )
            if name != "bad":
                problems.append(problem(number, 8 if name == "poison" else 7))
    write_table(tmp_path / ROWS, RowPlace, places)
    write_table(tmp_path / PROBLEMS, Problem, problems)
    write_table(tmp_path / DEMONSTRATIONS, Demonstration, [])
    write_table(tmp_path / QUARANTINE, QuarantinedItem, refused)
    files = [
        InboxFile(key=f"{name}.csv", uri="u", bytes=1, fingerprint="f", sha256=name)
        for name in ("good", "bad", "poison")
    ]

    found = suspects(tmp_path, [problem(number, 7) for number in range(30)], files)

    assert {
        "bad.csv": "10 of 10 rows cannot be used: missing_column 10",
        "poison.csv": "10 of 10 problems have another answer than the same question in rows that "
        "the released model knows",
    } == found
    held = conflicts(tmp_path, [problem(number, 7) for number in range(30)], files, found)
    assert [
        ("poison.csv", f"Question {number}?", ('{"value":"7"}',), '{"value":"8"}')
        for number in range(20, 25)
    ] == [(one.file, one.prompt, one.known, one.new) for one in held]


def test_nobody_suspects_a_file_that_somebody_approved(tmp_path):
    languages = {"old.csv": ["vi"] * 20}
    write(tmp_path, languages)
    known = [problem(number, 8) for number in range(20)]

    assert ["old.csv"] == list(suspects(tmp_path, known, listed(languages)))
    assert {} == suspects(tmp_path, known, listed(languages, approved="old.csv"))


@pytest.mark.parametrize(
    ("files", "approved", "expected"),
    [
        ({"a": ["vi"] * 9 + ["en"] * 91}, "", []),
        ({"a": ["vi"] * 89 + ["en"] * 11}, "", []),
        ({"a": ["vi"] * 90 + ["en"] * 10}, "", ["a"]),
        ({"a": ["vi"] * 50, "b": ["th"] * 45 + ["en"] * 5}, "", ["a", "b"]),
        ({"a": ["vi"] * 90}, "a", []),  # a new language enters with approval
        ({"a": ["vi"] * 90, "b": ["th"] * 90}, "a", ["b"]),
        ({"a": ["vi"] * 90, "b": ["en"] * 90}, "a", []),
        ({"a": ["vi"] * 9}, "", []),  # too few to decide: they wait for more
        ({"a": ["vi"] * 90, "b": ["th"]}, "a", ["b"]),
    ],
)
def test_files_of_a_new_language_enter_with_approval(tmp_path, files, approved, expected):
    write(tmp_path, files)
    known = [problem(1000 + number, 7) for number in range(200)]

    found = strangers(10, tmp_path, known, [], listed(files, approved=approved), [])

    assert expected == sorted(found)
    assert all("no problem of the released model has: language (" in why for why in found.values())


def write(folder, files):
    """A curated set: a problem for every language of every file."""
    places, problems = [], []
    for name, languages in files.items():
        for place, language in enumerate(languages, start=1):
            number = len(problems)
            places.append(RowPlace(source_row=f"{number:064d}", file=name, number=place))
            problems.append(problem(number, 7).model_copy(update={"language": language}))
    write_table(folder / ROWS, RowPlace, places)
    write_table(folder / PROBLEMS, Problem, problems)
    write_table(folder / DEMONSTRATIONS, Demonstration, [])
    write_table(folder / QUARANTINE, QuarantinedItem, [])


def listed(files, approved=""):
    return [
        InboxFile(
            key=name,
            uri="u",
            bytes=1,
            fingerprint="f",
            sha256=name,
            approved_by="ann" if name == approved else "",
        )
        for name in files
    ]


def test_the_same_damage_in_two_files_is_that_of_both(tmp_path):
    row = "0" * 64
    names = ["a.bin", "b.bin"]
    places = [RowPlace(source_row=row, file=name, number=1) for name in names]
    refusal = QuarantinedItem(
        stage="read",
        outcome=Outcome.QUARANTINED,
        kind=ItemKind.ROW,
        source="prompt_jsonl",
        key="a-1",
        reason="unknown_suffix",
        source_row=row,
    )
    write_table(tmp_path / ROWS, RowPlace, places)
    write_table(tmp_path / PROBLEMS, Problem, [])
    write_table(tmp_path / DEMONSTRATIONS, Demonstration, [])
    write_table(tmp_path / QUARANTINE, QuarantinedItem, [refusal] * 2)
    files = [InboxFile(key=one, uri=one, bytes=1, fingerprint=one, sha256=one) for one in names]

    assert names == list(suspects(tmp_path, [], files))
