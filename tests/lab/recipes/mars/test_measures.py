import json
from pathlib import Path

import numpy as np
import pytest

from data_schemas.verdicts import scored
from tasks.engines.chat import load_tokenizer
from tasks.errors import DataError
from tasks.evaluation.respondents import EvaluationAnswer, ScoredModel
from tasks.lab.recipes.mars.measures import (
    CALLS,
    AgentRow,
    SolutionChain,
    claims,
    markdown,
    measure,
)
from tests.records import problem_of

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
PROBLEMS = [
    problem_of(f"sum {number}", '{"value":"4"}', id=f"sums/{number}", source="sums")
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
            yield EvaluationAnswer(name, sample, text)


def score(problems, texts):
    return [scored(float(text == "4"), "rule") for text in texts]


@pytest.fixture(scope="module")
def model(tiny_moe):
    tokenizer = load_tokenizer(tiny_moe)
    return lambda *script: ScoredModel(Scripted(*script), tokenizer, score)


def rejects(_):
    return "Correctness: Wrong"


def sees(solution):
    return f"Correctness: {'Correct' if solution == '4' else 'Wrong'}"


def sides(rows, measure):
    """The values of the start model, and those of the trained one."""
    return [
        [getattr(row, measure) for row in rows if row.trained is side] for side in (False, True)
    ]


def test_a_verifier_that_rejects_everything_has_no_separation_and_one_that_sees_has_all(model):
    rows = measure(model(rejects), model(sees), PROBLEMS, 4)

    assert [[0.0, 0.0, None], [1.0, 1.0, None]] == sides(rows, "separation")


def test_a_verifier_that_sees_gets_every_solution_repaired_and_accepted(model):
    rows = measure(model(rejects), model(sees, "4"), PROBLEMS, 4)

    assert [0.5, 0.5, 0.0] == sides(rows, "system")[1]
    assert [0.0] * 3 == sides(rows, "harm")[1]
    assert [[0.0] * 3, [1.0] * 3] == sides(rows, "accepted")


def test_without_an_acceptance_the_solver_keeps_its_solution(model):
    """A verifier that rejects everything, in front of a corrector that is always wrong."""
    rows = measure(model(rejects, "5"), model(rejects, "5"), PROBLEMS, 4)

    assert [[0.0] * 3] * 2 == sides(rows, "system") == sides(rows, "harm")


def test_harm_is_the_share_of_right_solutions_for_which_a_wrong_one_is_returned(model):
    def prefers_five(solution):
        return f"Correctness: {'Correct' if solution == '5' else 'Wrong'}"

    rows = measure(model(sees), model(prefers_five, "5"), PROBLEMS, 4)

    assert [1.0] * 3 == sides(rows, "harm")[1]
    assert [-0.5, -0.5, -1.0] == sides(rows, "system")[1]


def test_a_verdict_that_cannot_be_read_is_no_acceptance_and_nothing_to_correct(model):
    rows = measure(model(rejects), model(lambda _: "Fine."), PROBLEMS, 4)

    assert [0.0] * 3 == sides(rows, "accepted")[1] == sides(rows, "system")[1]


@pytest.mark.parametrize("name", VECTORS["chains"])
def test_one_reward_for_the_trajectory_pays_against_a_responses_own_correctness(name):
    """The worked chains: one of three in three of the four."""
    given = VECTORS["chains"][name]
    solutions, verdicts, right = ["solution 0"], [], {"solution 0": given["solver_right"]}
    for agent, flag in given["turns"]:
        if agent == "V":
            verdicts.append((solutions[-1], not flag))
        else:
            solutions.append(f"solution {len(solutions)}")
            right[solutions[-1]] = flag
    own = [
        *(float(right[text]) for text in solutions),
        *(float(said is right[text]) for text, said in verdicts),
    ]

    found = SolutionChain("p", solutions, verdicts)

    assert sorted(own) == sorted(float(paid) for _, paid in given["per_agent"])
    assert given["misattributed"] / len(own) == pytest.approx(found.misattributed(right))


def test_a_solution_is_accepted_after_four_acceptances_in_a_row_or_returned_by_their_number():
    undecided = SolutionChain(
        "p", ["a", "b"], [("a", True), ("a", False), ("b", True), ("b", True)]
    )
    accepted = SolutionChain("p", ["a", "b"], [("a", True), ("a", False), *[("b", True)] * 4])

    assert (False, "b") == (undecided.accepted, undecided.answer)
    assert (True, "b") == (accepted.accepted, accepted.answer)
    assert "a" == SolutionChain("p", ["a", "b"], [("a", True), ("a", False), ("b", True)]).answer


def test_a_solution_is_verified_at_most_ten_times(model):
    asked = []

    def counts(solution):
        asked.append(solution)
        return "Correctness: Wrong"

    measure(model(counts, "5"), model(sees), PROBLEMS[2:], 1)

    assert CALLS == len(asked)


def test_without_held_out_problems_nothing_is_measured(model):
    with pytest.raises(DataError, match="no held-out problem"):
        measure(model(rejects), model(sees), [], 4)


def rows_of(name, before, after):
    both = {"problem_id": name, "harm": 0.5, "system": 0.0, "accepted": 0.5, "misattributed": 0.1}
    return [
        AgentRow(trained=trained, separation=separation, **both)
        for trained, separation in ((False, before), (True, after))
    ]


def part(changes):
    found = [rows_of(f"p{n}", 0.1, 0.1 + float(one)) for n, one in enumerate(changes)]
    return [row for rows in found for row in rows]


def test_a_claim_is_shown_if_its_interval_excludes_no_change_and_every_seed_agrees():
    draws = np.random.default_rng(0)
    noise = draws.normal(0.0, 0.05, 60)
    rose, stayed = part(0.3 + noise), part(noise - noise.mean())
    fell = part(0.0 * noise[:5] - 0.01)

    found = {one.claim: one for one in claims([[*rose, *rows_of("q", None, None)], rose], 0)}
    flat = {one.claim: one for one in claims([stayed], 0)}
    mixed = {one.claim: one for one in claims([rose, fell], 0)}

    assert found["separation, change"].shown is True
    assert 120 == found["separation, change"].problems
    assert flat["separation, change"].shown is False
    assert mixed["separation, change"].low > 0.0
    assert mixed["separation, change"].shown is False
    assert pytest.approx((0.3 + noise.mean(), -0.01)) == mixed["separation, change"].by_seed
    assert found["harm, change"].shown is False
    # No gain of the system is promised.
    assert found["system minus solver, change"].shown is None
    assert "| separation, change |" in markdown(list(found.values()))
