"""Every answer of an evaluation on one page."""

import json
import re

import pytest

from data_schemas.rows import Domain
from data_schemas.settings import EvaluationSettings
from data_schemas.sources import RowPlace
from tasks.evaluation.runner import summarise
from tasks.pages import answers
from tests.evaluation.conftest import make_problem, make_samples

__all__ = ["make_problem", "make_samples"]
SETTINGS = EvaluationSettings(samples=2)
TEXT = "</script><b>7</b>"


def data_of(html):
    found = re.search(r'type="application/json" id="data">(.*?)</script>', html.decode())
    return json.loads(found[1])


@pytest.fixture
def build(make_problem, make_samples):
    """Two models on three problems: the second loses b, gains a, and abstains on c."""

    def build():
        problems = [
            make_problem("a"),
            make_problem("b", domain=Domain.CHOICE, language="th"),
            make_problem("c"),
        ]
        kinds = [{}, {"domain": Domain.CHOICE, "language": "th"}, {}]
        scores = [[[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0], [None, None]]]
        evaluated = []
        for name, given in zip(("base", "tuned"), scores, strict=True):
            rows = [
                row.model_copy(update={"text": TEXT})
                for problem, mine, kind in zip(problems, given, kinds, strict=True)
                for row in make_samples(problem.id, mine, **kind)
            ]
            evaluated.append((summarise(SETTINGS, name, "c" * 64, rows), rows))
        places = {"0" * 64: RowPlace(source_row="0" * 64, file="f" * 64, number=3)}
        by_id = {problem.id: problem for problem in problems}
        return answers.render("Evaluation x", evaluated, by_id, places, SETTINGS)

    return build


def test_losses_come_first_among_differences_and_problems(build):
    data = data_of(build())

    assert ["base", "tuned"] == data["models"]
    assert "b" == data["problems"][0]["id"]
    first = data["differences"][0]
    assert (-1.0, -1.0, 1, 0) == (
        *(first["difference"], first["high"], first["candidate"], first["parent"]),
    )
    assert {"domain:choice", "language:th"} == {
        one["suite"] for one in data["differences"] if one["high"] < 0
    }


def test_an_answer_has_its_verdict_cost_and_raw_row(build):
    data = data_of(build())
    place = [problem["id"] for problem in data["problems"]].index("c")

    (answer, _) = data["answers"][1][place]
    assert (None, False, "timeout", 5) == (
        *(answer["score"], answer["solved"], answer["reason"], answer["tokens"]),
    )
    assert f"row 3 of the file with sha256 {'f' * 64}" in data["problems"][place]["row"]


def test_families_by_language_are_means_over_problems_with_a_verdict(build):
    base, tuned = data_of(build())["heat"]

    assert {"maths": {"en": [0.5, 2]}, "choice": {"th": [1.0, 1]}} == base
    assert {"maths": {"en": [1.0, 1]}, "choice": {"th": [0.0, 1]}} == tuned


def test_a_response_cannot_end_the_script(build):
    html = build()

    assert TEXT.encode() not in html
    assert TEXT == data_of(html)["answers"][0][0][0]["text"]


def test_a_page_has_a_limit_of_problems_and_characters_and_says_so(build, monkeypatch):
    monkeypatch.setattr(answers, "MAX_PROBLEMS", 2)
    monkeypatch.setattr(answers, "MAX_CHARACTERS", 4)

    data = data_of(build())

    assert (2, 1) == (len(data["problems"]), data["left_out"])
    assert ("</b>", len(TEXT) - 4) == (
        data["answers"][0][0][0]["text"],
        data["answers"][0][0][0]["cut"],
    )
