"""Two verifiers on graded responses: what is read, counted and shown."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from data_schemas.verdicts import abstain, scored
from tasks.errors import DataError
from tasks.evaluation.agreement import (
    GradedResponse,
    VerdictPair,
    compare_all,
    counts_table,
    facts,
    read_graded,
    rows_table,
    select_disputed,
    to_csv,
)
from tasks.gym import table
from tasks.stages.evaluation import agreement

RIGHT, WRONG, NOTHING = scored(1.0, "correct"), scored(0.0, "wrong"), abstain("timeout")


def compared(final, rule, label: bool | None = None) -> VerdictPair:
    return VerdictPair(GradedResponse("one", "[1,2]", "[/b] \\boxed{[1,2]}", label), final, rule)


ROWS = [
    compared(RIGHT, RIGHT, True),
    compared(WRONG, WRONG, True),
    compared(RIGHT, WRONG, False),
    compared(WRONG, RIGHT),
    compared(RIGHT, NOTHING, True),
]


@pytest.mark.parametrize(
    "row",
    [
        {"id": 7, "gold": 3, "response": "so 3", "pred": "4", "verdict": True},
        {"id": 7, "gold": "3", "solution": "so 3", "is_correct": True},
        {"id": 7, "answer": "3", "pred": "so 3", "expected": 1},
    ],
)
def test_the_columns_of_public_files_are_known(row: dict) -> None:
    assert [GradedResponse("7", "3", "so 3", True)] == read_graded(
        "a.jsonl", json.dumps(row).encode()
    )


@pytest.mark.parametrize("label", [-1, -1.0, 0, False, "false", "Wrong "])
def test_a_reward_that_is_not_positive_is_a_wrong_answer(label: object) -> None:
    row = {"gold": "3", "response": "4", "label": label}

    assert [GradedResponse("0", "3", "4", False)] == read_graded(
        "a.jsonl", json.dumps(row).encode()
    )


@pytest.mark.parametrize("label", [{}, {"label": None}, {"label": float("nan")}])
def test_parquet_is_read_and_a_missing_label_is_none(label: dict) -> None:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{"gold": "3", "response": "4"} | label]), file)

    assert [GradedResponse("0", "3", "4", None)] == read_graded("a.parquet", file.getvalue())


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "a.jsonl has no row"),
        (b'{"gold": "1"}', "row 0: needs one of gold, answer, value and one of response"),
        (b'{"gold"', "line 1: Expecting"),
        (b"[1]", "line 1 is not a JSON object"),
        (b'{"gold": "1", "pred": "1", "label": "A"}', "row 0: label is 'A'. Use true or false"),
    ],
)
def test_a_file_that_cannot_be_judged_is_refused_by_name(payload: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_graded("a.jsonl", payload)


def test_every_response_is_counted_once() -> None:
    counted = facts(ROWS)

    assert {
        "responses": 5,
        "both right": 1,
        "both wrong": 1,
        "only final_answer": 1,
        "only rule_answer": 1,
        "one or both abstain": 1,
        "rule_answer abstains: timeout": 1,
        "recorded verdicts": 4,
        "final_answer as recorded": 2,
        "rule_answer as recorded": 2,
    } == counted


def test_disputed_is_what_differs_from_the_other_or_from_the_record() -> None:
    assert ROWS[1:] == select_disputed(ROWS)


def test_the_tables_show_text_as_it_is_and_the_csv_has_every_row() -> None:
    console = Console(file=io.StringIO(), width=160)
    console.print(counts_table("[a].jsonl", facts(ROWS)))
    console.print(rows_table(select_disputed(ROWS), 2))
    lines = list(csv.DictReader(io.StringIO(to_csv(ROWS).decode())))

    assert "[a].jsonl" in console.file.getvalue()
    assert "Disputed: 2 of 4" in console.file.getvalue()
    assert "[/b] \\boxed{[1,2]}" in console.file.getvalue()
    assert ["1", "-1", "1", "-1", "1"] == [line["final_answer_reward"] for line in lines]
    assert ["1", "-1", "-1", "1", ""] == [line["rule_answer_reward"] for line in lines]


def test_the_command_judges_with_both_and_writes_the_csv(tmp_path, capsys) -> None:
    file = tmp_path / "graded.jsonl"
    rows = [
        {"gold": "1/2", "response": "\\boxed{0.5}", "label": True},
        {"gold": "26", "response": "It is 26,\nso she pays 26.", "label": True},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))

    written = agreement(file=str(file), out=str(tmp_path / "out.csv"), show=5)

    assert str(tmp_path / "out.csv") == written
    assert "only final_answer" in capsys.readouterr().out
    again = compare_all(read_graded(str(file), file.read_bytes()), table.score_batch)
    assert to_csv(again) == (tmp_path / "out.csv").read_bytes()
    table.close()
