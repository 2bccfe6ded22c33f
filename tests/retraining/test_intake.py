"""New files: copied, checked row by row, counted."""

import json

import pytest

from data_schemas.arrow import read_table
from data_schemas.intake import Intake
from data_schemas.prompts import Domain, Message, Problem, Role
from data_schemas.quarantine import Quarantined
from tasks.curation.ingest import check_raw_files
from tasks.curation.sources import read_file
from tasks.retraining.inbox import list_files
from tasks.retraining.intake import content_keys, take_in
from tasks.store.files import sha256_bytes


@pytest.fixture
def inbox(tmp_path):
    folder = tmp_path / "drop"
    folder.mkdir()
    return folder


@pytest.fixture
def take(inbox, tmp_path):
    """Take the whole inbox in and return the report with the refusals."""

    def take(known=frozenset()):
        out = tmp_path / "out"
        out.mkdir()
        report = take_in(str(inbox), list_files(str(inbox)), known, out)
        return report, read_table(out / "quarantine.parquet", Quarantined)

    return take


def test_every_row_is_valid_or_quarantined_and_fresh_or_known(take, inbox, make_row):
    rows = [make_row("one"), make_row("two"), "{broken", make_row("  ONE "), ""]
    (inbox / "a.jsonl").write_text("\n".join(rows))
    (inbox / "b.jsonl").write_text(make_row("two") + "\n" + make_row("three") + "\n")

    report, refused = take()

    assert (6, 5, 3) == (report.rows, report.valid, report.fresh)
    assert {"not_json": 1} == report.quarantined
    assert [(4, 3, 2), (2, 2, 1)] == [(f.rows, f.valid, f.fresh) for f in report.files]
    assert [f"{inbox}/a.jsonl-3"] == [row.key for row in refused]
    assert sha256_bytes(b"{broken") == refused[0].source_row


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ("[1, 2]", "not_an_object", "the row is a list"),
        ('{"answer": NaN}', "not_json", "NaN is not JSON"),
        ('{"messages": "\\ud800"}', "not_utf8", "surrogates"),
        ("{}", "schema", "domain: Field required"),
        ({"messages": []}, "schema", "messages: Tuple should have at least 1 item"),
        ({"domain": "cooking"}, "schema", "domain: Input should be 'maths'"),
        ({"difficulty": 3}, "schema", "difficulty: Extra inputs are not permitted"),
        ({"verifier": "oracle"}, "unknown_verifier", "'oracle' is not one of"),
        ({"answer": {"values": [7]}}, "bad_gold", "Problem.answer, value: Field required"),
    ],
)
def test_a_bad_row_is_quarantined_with_its_field(take, inbox, make_row, line, reason, detail):
    text = line if isinstance(line, str) else make_row("q", **line)
    (inbox / "a.jsonl").write_text(text)

    report, refused = take()

    assert ({reason: 1}, 0) == (report.quarantined, report.valid)
    assert detail in refused[0].detail


def test_bytes_that_are_no_text_are_quarantined(take, inbox, make_row):
    (inbox / "a.jsonl").write_bytes(b"\xff\xfe\n" + make_row("q").encode())

    report, _ = take()

    assert ({"not_utf8": 1}, 1) == (report.quarantined, report.valid)


def test_a_file_of_another_kind_is_quarantined_whole(take, inbox, make_row):
    (inbox / "rows.csv").write_text("a,b")
    (inbox / "a.jsonl").write_text(make_row("q"))

    report, refused = take()

    assert {"unknown_suffix": 1} == report.quarantined
    assert ".csv; the inbox takes .jsonl files" == refused[0].detail


def test_what_the_model_was_trained_on_is_known(take, inbox, make_row):
    trained = Problem(
        id="old",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="What is  3 + 4?"),),
        verifier="final_answer",
        answer='{"value":"7"}',
        source="sample_world",
        source_row="0" * 64,
    )
    (inbox / "a.jsonl").write_text(make_row("what is 3 + 4?") + "\n" + make_row("what is 3 + 5?"))

    report, _ = take(content_keys([trained]))

    assert (2, 1) == (report.valid, report.fresh)


def test_the_copies_are_the_raw_files_of_curation(take, inbox, make_row, tmp_path):
    line = make_row("q", id=5, source="their claim")
    (inbox / "a.jsonl").write_text(line)

    report, _ = take()
    (inbox / "a.jsonl").unlink()
    (raw,) = check_raw_files(tmp_path / "out")

    assert ("prompt_jsonl", "inbox/0001-a.jsonl") == (raw.adapter, raw.uri)
    assert line == (tmp_path / "out" / raw.uri).read_text()
    assert report.files[0].sha256 == raw.sha256 == sha256_bytes(line.encode())
    assert report == Intake.model_validate(
        json.loads((tmp_path / "out" / "intake.json").read_bytes())
    )


def test_files_of_one_name_from_two_folders_are_distinguished(take, inbox, make_row):
    for folder in ("x", "y"):
        (inbox / folder).mkdir()
        (inbox / folder / "a.jsonl").write_text(make_row(folder))

    report, _ = take()

    assert ["inbox/0001-a.jsonl", "inbox/0002-a.jsonl"] == [f.copy_name for f in report.files]


def test_an_empty_inbox_is_an_intake_of_nothing(take):
    report, refused = take()

    assert (0, 0, [], ()) == (report.rows, report.fresh, refused, report.files)


def test_curation_reads_every_row_that_intake_calls_valid(take, inbox, make_row, tmp_path):
    rows = [
        make_row("one", id=1),
        make_row("two"),
        "{",
        make_row("three", level=2),
        make_row("", id="x"),
    ]
    (inbox / "a.jsonl").write_text("\n".join(rows))

    report, refused = take()
    read = list(read_file("prompt_jsonl", 0, tmp_path / "out" / report.files[0].copy_name))

    assert (4, 1) == (report.valid, len(refused))
    assert [False, False, True, False, False] == [isinstance(row, Quarantined) for row in read]
