"""The requests are pairs in eight languages, and are read as they are written."""

import json

import pytest

from data_schemas.rows import Problem
from tasks.curation.adapters.table import read_file
from tasks.curation.generated.safety import FILE, GENERATORS, HARMFUL, HARMLESS, REQUESTS


def test_every_language_has_six_pairs_and_no_request_twice():
    for harmful, harmless in zip(*map(dict.items, REQUESTS.values()), strict=True):
        assert harmful[0] == harmless[0]
        assert (6, 6, 12) == (
            len(harmful[1]), len(harmless[1]), len({*harmful[1], *harmless[1]})
        )  # fmt: skip
    assert {"en", "zh-TW", "id", "ms", "pt", "th", "vi", "fil"} == REQUESTS[HARMFUL].keys()


@pytest.mark.parametrize(("source", "refuse"), [(HARMFUL, True), (HARMLESS, False)])
def test_a_request_is_a_problem_of_its_source_whatever_the_seed(tmp_path, source, refuse):
    GENERATORS[source](0, tmp_path)
    first = (tmp_path / FILE).read_bytes()
    GENERATORS[source](1, tmp_path)

    problems = [item.record for row in read_file(source, 0, tmp_path / FILE) for item in row]

    assert first == (tmp_path / FILE).read_bytes()
    assert all(isinstance(problem, Problem) for problem in problems)
    assert (48, f"{source}/en-1") == (len({one.id for one in problems}), problems[0].id)
    assert {refuse} == {json.loads(problem.answer)["refuse"] for problem in problems}
