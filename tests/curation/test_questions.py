"""Which training problems are posed to models that verify their answers."""

import pytest

from data_schemas.arrow import read_table, write_table
from data_schemas.gold_decisions import AppliedDecision
from data_schemas.rows import DECISIONS, HELD_OUT, PROBLEMS, ROWS, Problem
from data_schemas.settings import GradingSettings
from data_schemas.sources import RowPlace
from tasks.curation.questions import pose
from tasks.errors import DataError
from tasks.plugins import pin


@pytest.fixture
def curated(tmp_path, make_problem):
    """Four problems, of which a judge scores one, and one takes several turns."""
    problems = [make_problem(key, f"{key}?").record for key in "abcd"]
    for place, verifier in ((1, "rubric"), (2, "shop")):
        problems[place] = problems[place].model_copy(update={"verifier": verifier})
    (tmp_path / "curated").mkdir()
    (tmp_path / "out").mkdir()
    write_table(tmp_path / "curated" / PROBLEMS, Problem, problems)
    return tmp_path / "curated"


def test_what_a_program_verifies_in_one_turn_is_asked_with_earlier_decisions(curated, tmp_path):
    write_table(curated / DECISIONS, AppliedDecision, [])
    write_table(curated / ROWS, RowPlace, [])

    facts = pose(GradingSettings(), curated, tmp_path / "out")

    asked = [problem.id for problem in read_table(tmp_path / "out" / HELD_OUT, Problem)]
    assert (["test/a", "test/d"], {"problems": 4, "asked": 2}) == (asked, facts)
    assert all((tmp_path / "out" / name).exists() for name in (DECISIONS, ROWS))


def test_an_opinion_and_an_episode_of_ones_own_are_not_posed(curated, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(
        "class Opinion:\n    judged = True\n    def __call__(self, problem, response): ...\n"
        "class Game:\n    def observe(self, problem, turns): ...\n"
        "    def verify(self, problem, response): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    problems = read_table(curated / PROBLEMS, Problem)
    for place, name in ((0, "Opinion"), (3, "Game")):
        verifier = pin(f"own.py:{name}")
        problems[place] = problems[place].model_copy(update={"verifier": verifier})
    write_table(curated / PROBLEMS, Problem, problems)

    with pytest.raises(DataError, match="none of 4 training problems has an answer"):
        pose(GradingSettings(), curated, tmp_path / "out")


def test_the_draw_is_that_of_grading(curated, tmp_path):
    facts = pose(GradingSettings(max_problems=1), curated, tmp_path / "out")

    assert {"problems": 4, "asked": 1} == facts
    assert not (tmp_path / "out" / DECISIONS).exists()


def test_a_set_without_such_problems_is_refused(curated, tmp_path):
    problems = read_table(curated / PROBLEMS, Problem)
    write_table(curated / PROBLEMS, Problem, problems[1:3])

    with pytest.raises(DataError, match="none of 2 training problems has an answer"):
        pose(GradingSettings(), curated, tmp_path / "out")
