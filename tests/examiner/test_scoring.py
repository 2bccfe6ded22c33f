"""Verdicts on cases: in order, on any number of workers, counted and written down."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from data_schemas.verdicts import abstain, scored
from tasks.gym import table
from tests.examiner import foreign_process
from tests.examiner.case import Case
from tests.examiner.command import examine, parse_arguments
from tests.examiner.confusion import Confusion, disagrees, row
from tests.examiner.families import FAMILIES
from tests.examiner.scoring import MATH_VERIFY, CaseVerdict
from tests.processes import run_process
from tests.records import problem_of

MATHS = FAMILIES[-1]
CASES = 40
"""Fewer than there are classes: those that take seconds come last."""
FIVE = problem_of("What is 2 plus 3?", '{"value":"5"}', id="test/5", source_row="0")


@dataclass(frozen=True)
class Run:
    """What an examination counted, and where it wrote."""

    counted: Confusion
    out: Path


def examined(data: Path, out: Path, *more: str) -> Run:
    words = [str(data), "--cases", str(CASES), "--only", "maths", "--out", str(out), *more]
    return Run(examine(parse_arguments(words)), out)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 40 problems of GSM8K's form."""
    folder = tmp_path_factory.mktemp("data")
    rows = [
        {
            "question": f"What is {n} plus {n}?",
            "answer": f"{n}+{n}=<<{n}+{n}={2 * n}>>{2 * n}\n#### {2 * n}",
        }
        for n in range(6, 46)
    ]
    (folder / "gsm8k").mkdir()
    (folder / "gsm8k/train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture(scope="module")
def one_worker(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return examined(data, tmp_path_factory.mktemp("one"), "--workers", "1")


@pytest.mark.slow
def test_the_number_of_workers_changes_no_verdict(
    data: Path, one_worker: Run, tmp_path: Path
) -> None:
    two = examined(data, tmp_path, "--workers", "2")

    counts = [
        {
            key: (found.cases, found.false, found.abstained)
            for key, found in run.counted.counts.items()
        }
        for run in (one_worker, two)
    ]
    assert counts[0] == counts[1]
    rows = [(run.out / "disagreements.jsonl").read_text() for run in (one_worker, two)]
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_plain_boxes_are_accepted_and_other_digits_are_not(one_worker: Run) -> None:
    counts = one_worker.counted.counts

    for verifier in ("final_answer", "rule_answer"):
        for kind in ("boxed", "digit", "off_by_one"):
            assert 0 == counts["maths", kind, verifier].false, (verifier, kind)
    beside = sum(c.cases for (_, _, name), c in counts.items() if name == MATH_VERIFY)
    assert CASES > beside > 0


def test_the_sums_for_pages_are_those_of_the_table(one_worker: Run) -> None:
    sums = one_worker.counted.sums()

    ours = [one for one in sums if one["verifier"] == "final_answer"]
    assert {"accepted", "refused"} == {one["must_be"] for one in ours}
    assert CASES == sum(int(str(one["cases"])) for one in ours)
    assert all(0 == one["false"] and "maths" == one["family"] for one in ours)


def test_an_abstention_is_a_disagreement_only_where_the_answer_is_right() -> None:
    kinds = {kind.right: kind for kind in MATHS.classes}
    said = {
        (right, verdict.reason): disagrees(
            CaseVerdict(
                Case("maths", kinds[right], FIVE, "5", ()),
                "final_answer",
                verdict,
                0.0,
            )
        )
        for right in (True, False)
        for verdict in (abstain("none"), scored(1.0, "one"), scored(0.0, "zero"))
    }

    assert {
        (True, "none"): True,
        (True, "one"): False,
        (True, "zero"): True,
        (False, "none"): False,
        (False, "one"): True,
        (False, "zero"): False,
    } == said


def test_a_disagreement_can_be_read(one_worker: Run) -> None:
    lines = (one_worker.out / "disagreements.jsonl").read_text().splitlines()
    text = (one_worker.out / "disagreements.md").read_text()

    for line in lines:
        found = json.loads(line)
        assert f"## {found['verifier']}, {found['class']}: " in text
        assert found.keys() >= {"question", "gold", "response", "must_be", "reason", "detail"}


def test_a_folder_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["/nowhere"])

    assert "/nowhere is no folder of data sets. Name one: make examine DATA=folder" in (
        capsys.readouterr().err
    )


def test_checkers_that_are_not_installed_are_not_asked() -> None:
    request = json.dumps({"checker": "bfcl_eval", "gold": {"calls": []}, "response": "f()"})
    ended = run_process([sys.executable, "-I", foreign_process.__file__], input=request, timeout=60)
    named, answer = map(json.loads, ended.stdout.splitlines())

    assert [] == named
    assert answer["accepted"] is None


@pytest.mark.slow
def test_verdicts_on_public_data_are_those_known_by_construction(tmp_path: Path) -> None:
    """On public data: at most 1 in 1000 equivalents refused, 1 in 1000 falsifications accepted."""
    folder = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere"))
    if not folder.is_dir():
        pytest.skip("EACHPROMPT_DATA names no folder")
    counted = examine(
        parse_arguments([str(folder), "--cases", "20000", "--alone", "--out", str(tmp_path)])
    )
    sums: dict[tuple[str, str, bool], list[int]] = {}
    for (family, _, verifier), found in counted.counts.items():
        total = sums.setdefault((family, verifier, found.right), [0, 0])
        total[0] += found.false
        total[1] += found.cases
    shares = {key: false / cases for key, (false, cases) in sums.items()}

    assert {} == {key: share for key, share in shares.items() if share > 0.001}


def test_a_row_shortens_what_is_long() -> None:
    case = Case("maths", MATHS.classes[0], FIVE, "1" * 9999 + "5", ())
    found = row(CaseVerdict(case, "final_answer", scored(0.0, "wrong"), 0.0))

    assert str(found["response"]).endswith("5")
    assert "[... 8000 characters ...]" in str(found["response"])


def test_every_verifier_that_is_examined_exists() -> None:
    assert {name for family in FAMILIES for name in family.verifiers} <= table.VERIFIERS.keys()
