"""What people decide about gold answers is carried out and counted, or refused by name."""

import json
from pathlib import Path

import pytest

from data_schemas.arrow import read_table
from data_schemas.gold_decisions import Annotation, AppliedDecision
from data_schemas.rows import (
    DECISIONS,
    DEMONSTRATIONS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    Demonstration,
    Problem,
    QuarantinedItem,
)
from data_schemas.settings import CurationSettings, Source
from tasks.curation.cleaning.annotation import REASON
from tasks.curation.curate import REPORT, curate
from tasks.curation.ingest import ingest, raw_files
from tasks.errors import DataError, SettingsError
from tasks.formats.decisions import write_annotations
from tasks.store.files import sha256_bytes

SETTINGS = CurationSettings(max_prompt_tokens=300, max_response_tokens=300, held_out_per_suite=3)
SIGNED = {"by": "Ana", "at": "2026-01-02T03:04:05Z"}
BY = "by Ana at 2026-01-02T03:04:05+00:00"


def line(number: int) -> bytes:
    question = f"A shop has {number} bags and sells 2. How many are left?"
    answer = f"{number}-2=<<{number}-2={number - 2}>>{number - 2}\n#### {number - 2}"
    return json.dumps({"question": question, "answer": answer}).encode()


def decision(number: int, **changes: object) -> Annotation:
    """What people decided about the problem of this row."""
    shown = {
        "problem": f"gsm8k/set-{number - 9}",
        "source": "gsm8k",
        "source_row": sha256_bytes(line(number)),
        "reason": "no model solved it",
        "question": "",
        "gold": json.dumps({"value": str(number - 2)}, separators=(",", ":")),
        "answers": {},
    }
    return Annotation.model_validate(shown | SIGNED | changes)


def curated(base_model: Path, folder: Path, *decisions: Annotation) -> Path:
    """Curate twenty rows; the decisions are the last source, and have to act on the first."""
    for name in ("raw", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "set.jsonl").write_bytes(b"\n".join(line(number) for number in range(10, 30)))
    write_annotations(folder / "annotate.jsonl", decisions)
    sources = [
        Source(adapter="gsm8k", path=str(folder / "set.jsonl")),
        Source(adapter="decisions", path=str(folder / "annotate.jsonl"), limit=1),
    ]
    ingest(sources, 0, folder / "raw")
    (folder / "annotate.jsonl").unlink()  # the set does not depend on where the file was
    curate(SETTINGS, folder / "raw", base_model, folder / "out")
    return folder / "out"


def test_a_decision_is_carried_out_on_a_problem_and_its_demonstration(base_model, tmp_path):
    out = curated(
        base_model,
        tmp_path,
        decision(12, decision="drop"),
        decision(13, decision="correct", correction='{"value":"77"}'),
        decision(14, decision="keep"),
        decision(15),  # not yet decided
    )

    tables = ((PROBLEMS, Problem), (HELD_OUT, Problem))
    golds = {one.id: one.answer for name, kind in tables for one in read_table(out / name, kind)}
    shown = {one.id for one in read_table(out / DEMONSTRATIONS, Demonstration)}
    assert "gsm8k/set-3" not in golds.keys() | shown
    assert '{"value":"77"}' == golds["gsm8k/set-4"]
    assert '{"value":"12"}' == golds["gsm8k/set-5"]
    refused = [
        (one.kind.value, one.key, one.outcome.value, one.reason, one.detail)
        for one in read_table(out / QUARANTINE, QuarantinedItem)
        if one.key in ("gsm8k/set-3", "gsm8k/set-4")
    ]
    assert [
        ("problem", "gsm8k/set-3", "dropped", REASON, BY),
        ("demonstration", "gsm8k/set-3", "dropped", REASON, BY),
    ] == refused[:2]
    # The demonstration of the wrong answer is no longer imitated.
    assert [("demonstration", "gsm8k/set-4", "wrong_demonstration")] == [
        (kind, key, reason) for kind, key, _, reason, _ in refused[2:]
    ]


def test_the_report_and_a_table_of_the_set_say_what_was_decided(base_model, tmp_path):
    corrected = decision(13, decision="correct", correction='{"value":"77"}')

    out = curated(base_model, tmp_path, decision(12, decision="drop"), corrected)

    account = json.loads((out / REPORT).read_bytes())["sources"]
    assert {"gsm8k"} == account.keys()
    assert {"drop": 1, "correct": 1} == account["gsm8k"]["decisions"]
    assert 2 == account["gsm8k"]["dropped"][REASON]
    assert ("gsm8k/set-4", "correct", '{"value":"11"}', '{"value":"77"}', "Ana") == next(
        (one.problem, one.decision, one.gold, one.correction, one.by)
        for one in read_table(out / DECISIONS, AppliedDecision)
        if one.problem == "gsm8k/set-4"
    )
    listed = {file.adapter: file.uri for file in raw_files(tmp_path / "raw")}
    assert "decisions/1.jsonl" == listed["decisions"]


def test_a_set_about_which_nobody_decided_has_no_such_table(base_model, tmp_path):
    out = curated(base_model, tmp_path, decision(15))

    assert [] == read_table(out / DECISIONS, AppliedDecision)
    assert "decisions" not in json.loads((out / REPORT).read_bytes())["sources"]["gsm8k"]


def test_a_correction_that_the_verifier_cannot_read_is_quarantined(base_model, tmp_path):
    unreadable = decision(13, decision="correct", correction="seventy-seven")

    out = curated(base_model, tmp_path, unreadable)

    assert {("gsm8k/set-4", "bad_answer")} == {
        (one.key, one.reason)
        for one in read_table(out / QUARANTINE, QuarantinedItem)
        if one.key == "gsm8k/set-4"
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem": "gsm8k/set-99"}, "gsm8k/set-99: no source has this problem"),
        ({"source_row": "0" * 64}, "gsm8k/set-4: its raw row or gold answer is another one"),
        ({"gold": '{"value":"5"}'}, "gsm8k/set-4: its raw row or gold answer is another one"),
    ],
)
def test_an_unknown_problem_or_another_text_stops_curation_by_name(
    base_model, tmp_path, change, message
):
    with pytest.raises(DataError, match=f"1 of 2 decisions fit no problem: {message}"):
        curated(
            base_model,
            tmp_path,
            decision(12, decision="drop"),
            decision(13, decision="keep", **change),
        )
    assert not (tmp_path / "out" / PROBLEMS).exists()


@pytest.mark.parametrize("text", ['{"problem": 1}', None])
def test_a_file_that_holds_no_decisions_is_refused_before_anything_is_hashed(tmp_path, text):
    path = tmp_path / "annotate.jsonl"
    if text is not None:
        path.write_text(text)
    (tmp_path / "raw").mkdir()

    with pytest.raises(SettingsError, match=r"curation.sources\[0\].path: "):
        ingest([Source(adapter="decisions", path=str(path))], 0, tmp_path / "raw")
