"""The error rates that releases state are those of the examiner's evidence."""

import json

from tasks.gym.error_rates import FILE
from tests.examiner.error_rates import EVIDENCE, dumped, pool


def test_the_file_is_what_its_command_writes_from_the_evidence():
    assert dumped(pool()) == FILE.read_bytes(), "run python -m tests.examiner.error_rates"


def test_only_forms_that_no_reader_was_tuned_to_are_counted():
    rows = json.loads(EVIDENCE.read_text("utf-8"))["rows"]
    mine = [row for row in rows if (row["verifier"], row["false"]) == ("choice", "rejected")]

    (choice,) = [one for one in pool().rates if one.verifier == "choice"]

    counted = sum(row["of"] for row in mine if row["half"] == "report")
    assert counted == choice.false_negative.of < sum(row["of"] for row in mine)
    assert 0.0 < choice.false_positive.high < 0.05


def test_a_kind_of_error_that_was_not_tried_has_no_rate():
    (rule,) = [one for one in pool().rates if one.verifier == "rule_answer"]

    tried = {
        row["false"]
        for row in json.loads(EVIDENCE.read_text("utf-8"))["rows"]
        if (row["verifier"], row["half"]) == ("rule_answer", "report")
    }
    assert ("rejected" in tried) == (rule.false_negative is not None)
