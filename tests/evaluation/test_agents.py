import numpy as np
import pytest

from data_schemas.prompts import Domain, Message, Problem, Role
from data_schemas.verdicts import scored
from tasks.engines.chat import load_tokenizer
from tasks.errors import DataError
from tasks.evaluation.agents import AgentRow, Model, claims, markdown, measure
from tasks.evaluation.respondents import Answer

PROBLEMS = [
    Problem(
        id=f"sums/{number}",
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content=f"sum {number}"),),
        verifier="final_answer",
        answer='{"value":"4"}',
        source="sums",
        source_row="0" * 64,
    )
    for number in range(3)
]


class Scripted:
    """The solver is right on even samples; the others are functions of what they read."""

    def __init__(self, verdict, correction="4"):
        self.verdict, self.correction = verdict, correction

    def answer(self, problems, asked):
        for name, sample in asked:
            told = problems[name].messages[-1].content
            if "Findings:" in told:
                text = self.correction
            elif told.startswith("Solution: "):
                text = self.verdict(told.removeprefix("Solution: "))
            else:
                text = "4" if sample % 2 == 0 or name.endswith("2") else "5"
            yield Answer(name, sample, text)


def score(problems, texts):
    return [scored(float(text == "4"), "rule") for text in texts]


@pytest.fixture(scope="module")
def model(tiny_moe):
    tokenizer = load_tokenizer(tiny_moe)
    return lambda *script: Model(Scripted(*script), tokenizer, score)


def rejects(_):
    return "Correctness: Wrong"


def sees(solution):
    return f"Correctness: {'Correct' if solution == '4' else 'Wrong'}"


def test_a_verifier_that_rejects_everything_has_no_separation_and_one_that_sees_has_all(model):
    rows = measure(model(rejects), model(sees), PROBLEMS, 4)

    assert [0.0, 0.0, None] == [row.before_separation for row in rows]
    assert [1.0, 1.0, None] == [row.after_separation for row in rows]


def test_harm_is_the_share_of_right_solutions_that_a_round_turns_wrong(model):
    rows = measure(model(rejects, "5"), model(sees, "4"), PROBLEMS, 4)

    assert [1.0] * 3 == [row.before_harm for row in rows]
    assert [0.0] * 3 == [row.after_harm for row in rows]
    assert [-0.5, -0.5, -1.0] == [row.before_system for row in rows]
    assert [0.5, 0.5, 0.0] == [row.after_system for row in rows]


def test_without_held_out_problems_nothing_is_measured(model):
    with pytest.raises(DataError, match="no held-out problem"):
        measure(model(rejects), model(sees), [], 4)


def row(before, after, system=0.0):
    return AgentRow(
        problem_id="p",
        before_separation=before,
        after_separation=after,
        before_harm=0.5,
        after_harm=0.5,
        before_system=0.0,
        after_system=system,
    )


def test_a_claim_is_shown_if_its_interval_excludes_no_change():
    draws = np.random.default_rng(0)
    noise = draws.normal(0.0, 0.05, 60)
    rose = [row(0.1, 0.4 + float(one)) for one in noise]
    stayed = [row(0.1, 0.1 + float(one - noise.mean())) for one in noise]

    found = {one.claim: one for one in claims([*rose, row(None, None)], 0)}
    flat = {one.claim: one for one in claims(stayed, 0)}

    assert found["separation, change"].shown is True
    assert 60 == found["separation, change"].problems
    assert flat["separation, change"].shown is False
    assert found["harm, change"].shown is False
    # No gain of the system is promised.
    assert found["system minus solver, change"].shown is None
    assert "| separation, change |" in markdown(list(found.values()))
