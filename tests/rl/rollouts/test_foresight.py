"""Rules that foresee zero variance, judged on ledgers that are played again."""

import pytest

from data_schemas.ledgers import GroupOutcome, LedgerRow
from data_schemas.pass_rates import Band, GradedProblem
from tasks.rl.foresight import foresee


def row(step, problem, solved, outcome=None, **changes):
    flat = solved in (0, 8)
    chosen = GroupOutcome.ZERO_VARIANCE_TRAINED if flat else GroupOutcome.NON_ZERO_VARIANCE
    values = {
        "step": step,
        "round": 0,
        "problem_id": problem.id,
        "domain": problem.domain,
        "outcome": outcome or chosen,
        "rollouts": 8,
        "prompt_tokens": 1,
        "generated_tokens": 8,
        "draft_tokens": 0,
        "saved_tokens": 0,
        "trained_tokens": 8,
        "solved": solved,
        "abstained": 0,
        "mean_score": solved / 8,
        "advantage_mass": 1.0,
        "pass_rate_change": 0.0,
    }
    return LedgerRow(**(values | changes))


@pytest.fixture
def graded(problems):
    return [
        GradedProblem(**problem.model_dump(), pass_rate=None, mean_tokens=0.0, band=Band.UNGRADED)
        for problem in problems[:4]
    ]


def test_a_prompt_that_stays_as_it_is_is_foreseen_by_every_rule(graded):
    """Two prompts are always solved, two half of the time."""
    rows = [row(step, one, 4 + 4 * (n < 2)) for step in (1, 2, 3) for n, one in enumerate(graded)]

    (found,) = foresee([rows], graded)

    assert [12] * 4 == [one.groups for one in found]
    # Of 6 x 6 pairs only the 2 x 2 of the first draw, of which nothing is known, are ties.
    assert [34 / 36] * 2 == [one.ranking for one in found[1:3]]
    # The rule of today draws each towards its family, half of which is flat.
    assert found[0].ranking == pytest.approx(26 / 36)


def test_the_posterior_is_that_worked_by_hand(graded):
    """Beta(1, 1) has 2 / 9 for a flat group of 8; then Beta(9, 1)."""
    rows = [row(1, graded[0], 8), row(2, graded[0], 4)]

    (found,) = foresee([rows], graded)

    first, second = 2 / 9, 9 / 17  # Beta(9, 1): all eight are solved with 9 / 17
    never = 1.0
    for count in range(8):
        never *= (1 + count) / (10 + count)
    plain = next(one for one in found if one.rule == "MoPPS, decay 1")
    expected = ((first - 1.0) ** 2 + (second + never) ** 2) / 2
    assert expected == pytest.approx(plain.brier)
    assert plain.ranking == 0.0  # what was flat had been given less


def test_a_second_phase_knows_what_the_first_saw(graded):
    rows = [row(1, one, 4 + 4 * (n < 2)) for n, one in enumerate(graded)]

    first, second = foresee([rows, rows], graded)

    posterior = [one.ranking for phase in (first, second) for one in phase[1:3]]
    assert [0.5, 0.5, 1.0, 1.0] == posterior


def test_one_model_of_all_prompts_foresees_those_that_it_has_not_seen(graded):
    """One level is always solved, the other half of the time, each prompt once."""
    fresh = [
        one.model_copy(update={"id": f"{step}/{n}", "level": n % 2})
        for step in range(4)
        for n, one in enumerate(graded)
    ]
    rows = [
        row(step + 1, one, 8 if one.level else 4)
        for step in range(4)
        for one in fresh[4 * step : 4 * step + 4]
    ]

    (found,) = foresee([rows], fresh)

    ranking = {one.rule: one.ranking for one in found}
    assert ranking["MoPPS, decay 1"] == 0.5
    # The first draw, of which nothing is known, has one chance for all.
    assert ranking["one model of all prompts"] == 0.75


def test_what_was_not_a_finished_group_of_a_prompt_is_not_judged(graded):
    rows = [
        row(1, graded[0], 0, GroupOutcome.IN_FLIGHT),
        row(1, graded[1], 1, GroupOutcome.UNSCORED, abstained=7),
        row(1, graded[2], 0, GroupOutcome.SKIPPED_ZERO_VARIANCE, rollouts=0),
        row(1, graded[3], 8, GroupOutcome.SURPLUS),
    ]

    (found,) = foresee([rows], graded)

    assert {(1, None)} == {(one.groups, one.ranking) for one in found}
