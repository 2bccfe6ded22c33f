import json

import pytest

from data_schemas.arrow import write_table
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rows import GRADED, Domain, Message, Role
from data_schemas.samples import RESPONSES, ResponseTokens
from tasks.errors import DataError
from tasks.lab.study import early_stops


def problem(name: str, rate: float | None) -> GradedProblem:
    return GradedProblem(
        id=name,
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="1 + 1"),),
        verifier="final_answer",
        answer="2",
        source="s",
        source_row="0",
        pass_rate=rate,
        mean_tokens=3.0,
        band=Band.UNGRADED,
    )


def test_a_group_is_stopped_behind_the_tokens_that_all_its_responses_share():
    groups = {
        "alike": [(1, 2, 3, 4), (1, 2, 5, 6, 7)],
        "apart": [(1, 2, 3), (2, 2, 3)],
        "ended": [(1, 2), (1, 2, 3)],
    }
    contrast = {"alike": True, "apart": False, "ended": False}

    found = early_stops.early_stops(groups, contrast, 2)

    assert (1, 1, pytest.approx(5 / 20)) == (found.stopped, found.with_contrast, found.saved_share)


def test_a_set_without_responses_is_named(tmp_path):
    with pytest.raises(DataError, match=RESPONSES):
        early_stops.read_groups(tmp_path)


def test_problems_without_a_verdict_are_in_no_group(tmp_path):
    rows = [problem("p", 0.5), problem("q", None), problem("r", 1.0)]
    write_table(tmp_path / GRADED, GradedProblem, rows)
    answers = [
        ResponseTokens(stream=name, sample=sample, tokens=(7, 8, sample))
        for name in "pqr"
        for sample in range(2)
    ]
    write_table(tmp_path / RESPONSES, ResponseTokens, answers)

    early_stops.main([str(tmp_path), "--out", str(tmp_path / "found.json")])

    found = json.loads((tmp_path / "found.json").read_bytes())
    assert (2, 1) == (found["groups"], found["with_contrast"])
