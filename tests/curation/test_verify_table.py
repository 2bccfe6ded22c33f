"""The command `verify`: verdicts on a table of one's own, beside math-verify's."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.curation.commands import verify
from tasks.curation.first_rows import FIRST
from tasks.curation.verify_table import columns_of, verify_rows
from tasks.errors import SettingsError

ROWS = [
    {"q": "3 + 4?", "ref": "7", "text": "The answer is 7."},
    {"q": "3 + 4?", "ref": "7", "text": "It is 8."},
    {"q": "Half?", "ref": "\\frac{1}{2}", "text": "$\\frac{1}{2}$, or maybe 3"},
    {"q": "Weight?", "ref": "5", "text": '{"reasoning": "6 - 1", "answer": "5"}'},
    {"q": "Empty?", "ref": "", "text": "7"},
]


def table(path: Path) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(ROWS[0]))
            writer.writeheader()
            writer.writerows(ROWS)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_a_table_in_any_format_gets_verdicts_with_reasons(name, tmp_path, capsys):
    out = tmp_path / "verdicts.csv"
    columns = ["--column", "question=q", "--column", "gold=ref", "--column", "answer=text"]

    verify([str(table(tmp_path / name)), *columns, "--out", str(out)])

    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert ["1", "0", "0", "1", ""] == [row["score"] for row in rows]
    assert ["correct", "wrong", "several_answers", "correct", "empty_field"] == [
        row["reason"] for row in rows
    ]
    assert ["1", "0"] == [row["math_verify"] for row in rows[:2]]
    printed = capsys.readouterr().out
    assert "2  right       correct" in printed
    assert "math-verify decides otherwise" in printed


def test_a_language_or_a_gold_that_is_none_costs_its_row_its_verdict(tmp_path):
    file, out = tmp_path / "t.csv", tmp_path / "o.csv"
    lines = ["7,7,en", "7,7,NULL", "7,7,vn", "#N/A,7,en"]
    file.write_text("\n".join(["gold,answer,language", *lines]))

    verify([str(file), "--out", str(out)])

    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert ["1", "1", "", ""] == [row["score"] for row in rows]
    assert ["bad_language", "empty_field"] == [row["reason"] for row in rows[2:]]
    with pytest.raises(SettingsError, match="--language 'English' is no tag"):
        verify([str(file), "--out", str(tmp_path / "other.csv"), "--language", "English"])


def test_numbers_by_their_type_have_a_machines_point_in_every_language(tmp_path):
    file, out = tmp_path / "t.jsonl", tmp_path / "o.csv"
    pairs = [(1.375, "Resposta: 1,375"), (1.375, "Resposta: 1375"), ("1.375", "1375"), (1.5, 1.5)]
    rows = [{"question": "Quanto?", "gold": gold, "answer": answer} for gold, answer in pairs]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    verify([str(file), "--language", "pt", "--out", str(out)])

    found = list(csv.DictReader(out.read_text().splitlines()))
    assert ["1", "0", "1", "1"] == [row["score"] for row in found]
    assert "1" == found[3]["math_verify"]


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path):
    file = str(table(tmp_path / "t.jsonl"))

    missing = r"'gold' .*'answer' .* --column gold=NAME --column answer=NAME .* q, ref"
    with pytest.raises(SettingsError, match=missing):
        verify([file, "--out", str(tmp_path / "o.csv")])
    with pytest.raises(SettingsError, match="'label=ref' is not ROLE=NAME"):
        verify([file, "--column", "label=ref"])
    with pytest.raises(SettingsError, match="is no file"):
        verify([str(tmp_path / "none.csv")])


def test_a_file_of_which_no_row_can_be_read_is_refused_with_what_to_write(tmp_path):
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(ROWS))

    with pytest.raises(SettingsError, match=r"no readable row: .*json is not one of .*json"):
        verify([str(file), "--out", str(tmp_path / "o.csv")])
    for payload, message in (
        (b'{"gold": "5", "answer": "5"}\n', "is JSON and no table"),
        ("gold,answer\nёж,юг\n".encode("cp1251"), "is not UTF-8, and no byte says what it is"),
        (b"gold,answer\n", "it has a header at most"),
    ):
        (tmp_path / "answers.csv").write_bytes(payload)
        with pytest.raises(SettingsError, match=f"no readable row: .*{message}"):
            verify([str(tmp_path / "answers.csv"), "--out", str(tmp_path / "o.csv")])
    assert not (tmp_path / "o.csv").exists()


def test_math_verify_is_asked_for_a_bare_formula_as_it_reads_one(tmp_path):
    file, out = tmp_path / "t.csv", tmp_path / "o.csv"
    file.write_text('gold,answer\n$2x$,f(x)=2x\n"(1,1), (3,2)","(1, 1), (3, 2)"\n1000,1 000\n')

    verify([str(file), "--out", str(out)])

    assert ["1", "1", "1"] == [
        row["math_verify"] for row in csv.DictReader(out.read_text().splitlines())
    ]


def test_golds_that_their_own_answers_do_not_earn_are_refused_before_the_verdicts(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('gold,answer\n"the answer is 5, not 6",5\n"the answer is 7, not 8",7\n')

    with pytest.raises(SettingsError, match=r"column 'gold': .* cannot be won"):
        verify([str(file), "--out", str(tmp_path / "o.csv")])


def test_answers_that_only_end_a_thought_say_that_the_prompt_has_opened_it(tmp_path):
    file, out = tmp_path / "t.jsonl", tmp_path / "o.csv"
    answers = [
        "3 + 4 is 7.</think>7",
        "So the answer is 7. Hmm, wait",
        "<think>7</think>The answer is 7.",
    ]
    rows = [{"question": "3 + 4?", "gold": "7", "answer": answer} for answer in answers]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    verify([str(file), "--out", str(out)])

    assert ["correct", "no_answer", "correct"] == [
        row["reason"] for row in csv.DictReader(out.read_text().splitlines())
    ]


def test_a_column_of_lists_is_refused_and_a_chat_is_what_its_turns_say(tmp_path):
    file, out = tmp_path / "t.parquet", tmp_path / "o.csv"
    chat = [{"role": "user", "content": "Half of 9, as a decimal?"}]
    row = {"question": chat, "gold": "4.5", "answer": [{"role": "assistant", "content": "4.5"}]}
    pq.write_table(pa.Table.from_pylist([row]), file)

    verify([str(file), "--out", str(out)])

    assert ["correct"] == [one["reason"] for one in csv.DictReader(out.read_text().splitlines())]
    pq.write_table(pa.Table.from_pylist([row | {"answer": ["4.5", "5"]}]), file)
    with pytest.raises(SettingsError, match=r"'answer', the answer, has a list.* one text a row"):
        verify([str(file), "--out", str(tmp_path / "another.csv")])


def test_a_table_is_not_written_over_and_a_missing_question_is_said(tmp_path, capsys):
    file = tmp_path / "verdicts.csv"
    file.write_text("gold,answer\n7,7\n")

    with pytest.raises(SettingsError, match="is the table itself"):
        verify([str(file), "--out", str(file)])
    verify([str(file), "--out", str(tmp_path / "o.csv")])

    assert "Read without questions" in capsys.readouterr().out
    assert "gold,answer\n7,7\n" == file.read_text()


def test_a_column_is_looked_for_in_all_of_the_first_rows(tmp_path):
    file, out = tmp_path / "t.jsonl", tmp_path / "o.csv"
    rows = [{"gold": "7"}, {"gold": "7", "answer": "7"}]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    verify([str(file), "--out", str(out)])

    found = list(csv.DictReader(out.read_text().splitlines()))
    assert [("", "missing_field"), ("1", "correct")] == [
        (one["score"], one["reason"]) for one in found
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, rows[1] | {"answer": ["7"]}]))
    with pytest.raises(SettingsError, match=r"'answer', the answer, has a list.* in row "):
        verify([str(file), "--out", str(tmp_path / "another.csv")])


def test_a_list_behind_the_first_rows_is_an_abstention_and_not_its_python_form(tmp_path):
    file, out = tmp_path / "t.jsonl", tmp_path / "o.csv"
    rows = [{"gold": "7", "answer": "7"}] * FIRST + [{"gold": "7", "answer": ["7"]}]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    verify([str(file), "--out", str(out)])

    *_, last = csv.DictReader(out.read_text().splitlines())
    assert ("", "not_text") == (last["score"], last["reason"])


def test_earlier_verdicts_are_not_written_over(tmp_path):
    file, out = tmp_path / "t.jsonl", tmp_path / "verdicts.csv"
    file.write_text('{"gold": "7", "answer": "7"}\n')
    out.write_text("of yesterday")

    with pytest.raises(SettingsError, match=r"verdicts\.csv is there already.*name another file"):
        verify([str(file), "--out", str(out)])

    assert "of yesterday" == out.read_text()


@pytest.mark.parametrize("written", [list, json.dumps])
def test_the_words_of_a_question_are_no_answer(written, tmp_path):
    question = {"role": "user", "content": "Is it 5 or 4?"}
    reply = {"role": "assistant", "content": "It is 4."}
    chats = {
        "right": [question, reply],
        "wrong": [question, {"role": "assistant", "content": "It is 5."}],
        "empty": [question, {"role": "assistant", "content": ""}],
        "none": [question],
        "before": [question, reply, question],
        "tool": [question, reply | {"content": "?"}, {"role": "tool", "content": "4"}],
        "alone": [reply],
    }
    file = tmp_path / "answers.jsonl"
    lines = [{"gold": "4", "answer": written(chat)} for chat in chats.values()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    rows = verify_rows(file, columns_of([]), "final_answer", "en")
    solved = {name for name, row in zip(chats, rows, strict=True) if row.verdict.solved}

    assert {"right", "alone"} == solved


def test_a_cell_that_only_begins_as_a_deep_chat_is_a_text_and_loses_no_other_row(tmp_path):
    deep = '[{"role": "assistant", "content": ' + "[" * 100_000
    file = tmp_path / "answers.jsonl"
    lines = [{"gold": "4", "answer": answer} for answer in (deep, "The answer is 4.")]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    rows = verify_rows(file, columns_of([]), "final_answer", "en")

    assert [0.0, 1.0] == [row.verdict.score for row in rows]
