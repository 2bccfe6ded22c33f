import pytest

from data_schemas.rows import Domain
from tasks.rl.prompts import NEIGHBOUR_WEIGHT, PromptHistory, PromptNeighbours


def remembered(problems, groups):
    """Records of groups by the index of their problem: responses that solved it, of eight."""
    history = PromptHistory({})
    for place, solved in groups.items():
        history.remember(problems[place].id, solved=solved, scored=8, lengths=[10])
    return history


def predictor(problems, groups):
    return PromptNeighbours(problems, remembered(problems, groups))


def test_nothing_is_predicted_where_the_domain_has_no_record(problems):
    assert 0.0 == predictor(problems, {}).zero_variance_probability(problems[0], 8)


def test_a_prompt_without_a_record_is_expected_to_be_like_its_family(problems):
    chances = [
        predictor(problems, dict.fromkeys(range(1, 12), solved)).zero_variance_probability(
            problems[0], 8
        )
        for solved in (0, 4, 8)
    ]

    assert chances[0] == pytest.approx(chances[2])
    assert chances[0] > 0.6
    assert chances[1] < 0.2


def test_a_family_is_not_predicted_from_another_one_of_its_domain(problems):
    hard = [problem.model_copy(update={"level": 2}) for problem in problems[:6]]
    rows = [*hard, *problems[6:]]
    found = predictor(rows, dict.fromkeys(range(1, 6), 0) | dict.fromkeys(range(7, 12), 4))

    assert found.zero_variance_probability(rows[0], 8) > 0.5
    assert found.zero_variance_probability(rows[6], 8) < 0.1


def test_the_own_record_counts_next_to_that_of_the_family(problems):
    same = dict.fromkeys(range(1, 12), 4)
    chances = [
        predictor(problems, same | {0: solved}).zero_variance_probability(problems[0], 8)
        for solved in (4, 8)
    ]

    assert chances[0] < chances[1]
    # Half of 8 responses of its neighbours and all of 8 of its own: Beta(4 + 8, 4).
    assert NEIGHBOUR_WEIGHT == 8.0
    assert 0.154 == pytest.approx(chances[1], abs=1e-3)


def test_prompts_are_predicted_with_what_the_policy_has_learned_since(problems):
    as_expected, learned = PromptHistory({}), PromptHistory({})
    for place in range(6):
        as_expected.remember(problems[place].id, 6, 8, [10], expected=0.75)
        learned.remember(problems[place].id, 6, 8, [10], expected=0.5)
    before, now = PromptNeighbours(problems, as_expected), PromptNeighbours(problems, learned)

    assert before.recorded_rate(problems[7]) == before.pass_rate(problems[7])
    assert before.recorded_rate(problems[7]) == now.recorded_rate(problems[7])
    solved, failed = before.pass_rate(problems[7])
    solved_now, failed_now = now.pass_rate(problems[7])
    assert solved + failed == pytest.approx(solved_now + failed_now)
    # 6 groups at 6/8 beside 2 at 1/2 are 5.5 of 8, and these beside 2 in the family 5.875 of 8.
    assert (5.875 / 2.125) * solved / failed == pytest.approx(solved_now / failed_now)
    assert now.zero_variance_probability(problems[7], 8) > before.zero_variance_probability(
        problems[7], 8
    )
    assert now.expected_pass_rate(problems[7]) == pytest.approx(solved / (solved + failed))


def test_a_movement_reaches_other_families_of_its_domain_but_no_other_domain(problems):
    hard = [problem.model_copy(update={"level": 2}) for problem in problems[:2]]
    other = problems[0].model_copy(update={"id": "other", "domain": Domain.CODE})
    rows = [*hard, *problems[2:], other]
    history = PromptHistory({})
    history.remember(hard[0].id, 4, 8, [10], expected=0.5)
    history.remember(other.id, 4, 8, [10], expected=0.5)
    for problem in problems[2:8]:
        history.remember(problem.id, 8, 8, [10], expected=0.5)
    found = PromptNeighbours(rows, history)

    def moved(problem):
        odds = [solved / failed for solved, failed in rates(problem)]
        return odds[1] / odds[0]

    def rates(problem):
        return found.recorded_rate(problem), found.pass_rate(problem)

    assert moved(problems[9]) > moved(hard[1]) > 1.0
    assert 1.0 == pytest.approx(moved(other))


def test_the_order_of_the_problems_changes_no_bit(problems):
    history = remembered(problems, {0: 3, 1: 5, 2: 1, 3: 7})
    history.remember(problems[4].id, 7, 8, [10], expected=0.3)
    history.remember(problems[5].id, 2, 8, [10], expected=0.6)
    forwards = PromptNeighbours(problems, history)
    restored = PromptHistory(dict(reversed(history.records().items())))
    backwards = PromptNeighbours(problems[::-1], restored)

    assert [forwards.zero_variance_probability(problem, 8) for problem in problems] == [
        backwards.zero_variance_probability(problem, 8) for problem in problems
    ]


def test_another_domain_says_nothing(problems):
    other = problems[0].model_copy(update={"id": "other", "domain": Domain.CODE})
    found = predictor([*problems, other], dict.fromkeys(range(12), 8))

    assert 0.0 == found.zero_variance_probability(other, 8)
