"""Rows of sets with human labels get the verifier and the gold that are meant for them."""

import json
from pathlib import Path

from tasks.gym.table import score_batch
from tests.examiner.human_labels import (
    EVIDENCE,
    OURS,
    UNREAD,
    bare,
    option_gold,
    read,
    summary,
    with_others,
)

QUESTION = r"""Which one is red?
$\textbf{(A)}\ \text{sky} \qquad \textbf{(B)}\ \text{rose} \qquad \textbf{(C)}\ 7$"""
LINES = "Is it red?\nA: sky\nB: rose\nC. sea"


def test_a_worked_solution_is_the_content_of_its_last_box() -> None:
    assert r"\frac{1}{2}" == bare(r"So $x = \boxed{3}$, and $y = \boxed{\frac{1}{2}}$.")
    assert "7" == bare(" 7 ")
    assert r"a \boxed{b" == bare(r"a \boxed{b")


def test_a_letter_is_an_option_of_the_question_and_a_word_a_state() -> None:
    for asked, gold in ((QUESTION, r"\textbf{(B)}\ 337"), (LINES, r"\text{B: rose}")):
        found = option_gold(asked, gold)

        assert found is not None
        assert "B" == found["correct"][0]
        assert ["A", "C"] == [names[0] for names in found["others"]]
    assert {"correct": ["proved"], "others": [["disproved"], ["unknown"]]} == option_gold(
        "Is it?", r"\text{Proved}"
    )
    assert option_gold("No options here", "B") is None
    assert option_gold(LINES, "green") is None


def test_false_verdicts_are_counted_by_label_and_abstentions_are_none(tmp_path: Path) -> None:
    row = {"question": "1 + 1?", "ground_truth": "2"}
    rows = [
        {**row, "id": 0, "fn_output": "$2$", "tn_output": "3"},
        {**row, "id": 1, "fn_output": "3", "tn_output": "2"},
        {**row, "id": 2, "ground_truth": "\\end{cases}", "fn_output": "1", "tn_output": "2"},
    ]
    (tmp_path / "HardVerify-Math.json").write_text(json.dumps(rows))
    cases = list(read(tmp_path))
    verdicts = score_batch([one.problem(one.answer) for one in cases], [c.response for c in cases])

    (record,) = summary(cases, {OURS: list(verdicts)}, {"HardVerify-Math/1/tn_output": "a label"})

    ours = record["graders"][OURS]
    assert [(1, 3), (1, 3)] == [
        (ours[kind]["false"], ours[kind]["of"]) for kind in ("refused", "accepted")
    ]
    assert 1 == ours["refused"]["abstained"].total() == ours["accepted"]["abstained"].total()
    assert {"refused": {UNREAD: 1}, "accepted": {"a label": 1}} == record["causes"]


def test_graders_that_are_not_asked_keep_their_counts_on_the_same_rows() -> None:
    def record(of: int, *graders: str) -> dict[str, object]:
        kinds = {kind: {"of": of} for kind in ("refused", "accepted")}
        return {"set": "one", "verifier": "choice", "graders": dict.fromkeys(graders, kinds)}

    (kept,) = with_others([record(3, OURS)], [record(3, OURS, "other")])
    (other_rows,) = with_others([record(3, OURS)], [record(4, OURS, "other")])

    assert {OURS, "other"} == set(kept["graders"])
    assert {OURS} == set(other_rows["graders"])


def test_every_false_verdict_of_the_evidence_was_read() -> None:
    found = json.loads(EVIDENCE.read_text("utf-8"))

    assert found["rows"]
    assert [] == [
        (row["set"], kind)
        for row in found["rows"]
        for kind, causes in row["causes"].items()
        if UNREAD in causes
    ]
