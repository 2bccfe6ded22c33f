"""Which files people must look at."""

import pytest

from data_schemas.arrow import write_table
from data_schemas.curated import DEMONSTRATIONS, PROBLEMS, QUARANTINE, ROWS
from data_schemas.demonstrations import Demonstration
from data_schemas.intake import InboxFile
from data_schemas.prompts import Domain, Message, Problem, Role
from data_schemas.quarantine import ItemKind, Outcome, Quarantined
from data_schemas.raw_files import RowPlace
from tasks.retraining.suspicion import FileRows, suspects


def problem(number, value):
    return Problem(
        id=f"p{number}",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content=f"Question {number}?"),),
        verifier="final_answer",
        answer=f'{{"value":"{value}"}}',
        source="shop",
        source_row=f"{number:064d}",
    )


def rows(total=100, unusable=0, problems=100, contradictions=0) -> FileRows:
    return FileRows(total, unusable, {"not_json": unusable}, problems, contradictions)


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        (rows(unusable=50), ""),
        (FileRows(1, 1, {"not_json": 1}, 0, 0), ""),
        (FileRows(4, 4, {"not_json": 4}, 0, 0), ""),
        (FileRows(5, 5, {"not_json": 5}, 0, 0), "5 of 5 rows cannot be used: not_json 5"),
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
                    Quarantined(
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
    write_table(tmp_path / QUARANTINE, Quarantined, refused)
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
