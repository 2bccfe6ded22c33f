"""A file of rows: scored whole, or from where an earlier run was stopped."""

import io
import json

import pytest
from rich.console import Console

from data_schemas.rl_settings import RewardSettings
from tasks.engines.scoring import open_scoring
from tasks.errors import DataError, SettingsError
from tasks.gym.__main__ import main, run
from tasks.gym.serving.offline import PORTION, score_file
from tests.slices import sliced


def row(number):
    answer = {"correct": [f"bag {number % 7}"]}
    return {"id": f"p/{number}", "verifier": "choice", "answer": answer, "response": "bag 3"}


@pytest.fixture(scope="module")
def scorer():
    with open_scoring(None, RewardSettings(), num_workers=1) as service:
        yield service


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text("\n".join(json.dumps(row(n)) for n in range(PORTION + 100)) + "\n\n")
    return file


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_row_has_its_verdict_in_order(scorer, source, tmp_path):
    out = tmp_path / "out.jsonl"

    counts = score_file(source, out, scorer)

    scores = [float(number % 7 == 3) for number in range(PORTION + 100)]
    assert scores == [line["score"] for line in read(out)]
    assert [f"p/{n}" for n in range(PORTION + 100)] == [line["id"] for line in read(out)]
    assert {"correct": sum(scores), "wrong": len(scores) - sum(scores)} == counts
    assert not out.with_name("out.jsonl.partial").exists()


def test_a_stopped_run_goes_on_behind_the_last_whole_line(scorer, source, tmp_path):
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    score_file(source, whole, scorer)
    lines = whole.read_bytes().split(b"\n")
    marked = [line.replace(b'"detail"', b'"detail" ') for line in lines[:50]]
    (tmp_path / "out.jsonl.partial").write_bytes(b"\n".join(marked) + b"\n" + lines[50][:9])

    score_file(source, out, scorer)

    assert marked == out.read_bytes().split(b"\n")[:50]
    assert read(whole) == read(out)


def test_what_was_written_for_another_file_is_not_gone_on_with(scorer, source, tmp_path):
    (tmp_path / "out.jsonl.partial").write_text('{"row": "other"}\n')

    with pytest.raises(DataError, match=r"was not written from these rows\. Delete it"):
        score_file(source, tmp_path / "out.jsonl", scorer)


def test_a_line_that_is_no_row_is_named_before_anything_is_scored(scorer, tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps(row(0)) + '\n{"verifier": "choice"}\n')

    with pytest.raises(DataError, match=r"in\.jsonl, line 2: answer: Field required"):
        score_file(file, tmp_path / "out.jsonl", scorer)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.attack
@pytest.mark.parametrize(
    "name",
    sliced(["evil.py:polite", "evil:polite", "environment"], lambda name: name == "evil.py:polite"),
)
def test_a_row_of_a_file_names_no_code_that_was_not_listed(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    text = "open('was_run', 'w')\n\ndef polite(problem, response): ...\n"
    (tmp_path / "evil.py").write_text(text)
    (tmp_path / "in.jsonl").write_text(json.dumps({**row(0), "verifier": name}))

    with pytest.raises(SettingsError, match=r"does not exist.*has to be listed"):
        run(["score", "in.jsonl", "--out", "out.jsonl"], Console())
    assert not (tmp_path / "was_run").exists()


def test_a_verifier_of_the_users_own_scores_when_it_is_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "from data_schemas.verdicts import scored\n\n"
        "def polite(problem, response):\n    return scored(1.0, 'polite')\n"
    )
    (tmp_path / "in.jsonl").write_text(json.dumps({**row(0), "verifier": "own.py:polite"}))
    arguments = ["score", "in.jsonl", "--out", "out.jsonl", "--verifier", "own.py:polite"]
    run(arguments, Console(file=io.StringIO()))

    assert [1.0] == [line["score"] for line in read(tmp_path / "out.jsonl")]


def test_the_exit_code_says_who_can_act(tmp_path, capsys):
    """2 = whoever called, 1 = whoever made the rows."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{\n")
    arguments = ["score", str(rows), "--out", str(tmp_path / "out.jsonl"), "--workers", "1"]

    assert 2 == main([*arguments, "--settings", '{"nobody": 1}'])
    assert 1 == main(arguments)
    assert 2 == capsys.readouterr().err.count("error: ")
