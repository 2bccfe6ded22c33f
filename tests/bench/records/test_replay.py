"""Predictions are rebuilt from the past only, with the numbers of the loop."""

import numpy as np
import pytest

from data_schemas.graded import Band, GradedProblem
from data_schemas.ledger import GroupOutcome, LedgerRow
from data_schemas.prompts import Domain, Message, Role
from tasks.algorithms.zero_variance import zero_variance_expectation
from tasks.errors import DataError, SettingsError
from tasks.rl.prompts import History, Neighbours
from tests.bench.records.replay import interval, phases, replay


def graded(name, pass_rate=0.5):
    return GradedProblem(
        id=name,
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="?"),),
        verifier="final_answer",
        answer='"1"',
        source="s",
        source_row="0",
        pass_rate=pass_rate,
        mean_tokens=20.0,
        band=Band.MEDIUM,
    )


def group(name="a", step=1, draw=0, solved=4, outcome=GroupOutcome.NON_ZERO_VARIANCE, **changes):
    values = {
        "step": step,
        "round": draw,
        "problem_id": name,
        "domain": Domain.MATHS,
        "outcome": outcome,
        "rollouts": 8,
        "prompt_tokens": 5,
        "generated_tokens": 100,
        "draft_tokens": 20,
        "saved_tokens": 0,
        "trained_tokens": 0,
        "solved": solved,
        "abstained": 0,
        "mean_score": solved / 8,
        "advantage_mass": 0.0,
        "pass_rate_change": 0.0,
    }
    return LedgerRow(**(values | changes))


def test_a_draw_knows_grading_and_earlier_draws_and_nothing_else():
    problems = [graded("a"), graded("b", 1.0)]
    rows = [group("a", 1, 1, solved=0), group("a", 1, 0, solved=8), group("b", 1, 0)]
    first, other, again = replay(problems, rows)
    history = History.graded(problems)
    graded_only = Neighbours(problems, history)
    before = graded_only.pass_rate(problems[0])
    expected = [graded_only.expected_pass_rate(problem) for problem in problems]
    history.remember("a", 8, 8, [10] * 8, expected[0])
    history.remember("b", 4, 8, [10] * 8, expected[1])
    after = Neighbours(problems, history).pass_rate(problems[0])

    assert (before, after) == ((first.solved, first.failed), (again.solved, again.failed))
    assert (20.0, 20.0, 15.0) == tuple(
        draw.response_tokens for draw in (first, other, again)
    )  # 80 tokens of 8 responses count half
    assert before is not None
    assert first.zero_variance == zero_variance_expectation(*before, 8)
    assert [8, 4, 0] == [draw.row.solved for draw in (first, other, again)]


def test_a_group_without_verdicts_is_left_out():
    (draw,) = replay(
        [graded("a")],
        [group(abstained=7, outcome=GroupOutcome.UNSCORED), group(step=2)],
    )

    assert 2 == draw.row.step


def test_a_phase_that_skips_and_an_unknown_prompt_are_refused():
    skipped = group(outcome=GroupOutcome.SKIPPED_ZERO_VARIANCE)
    with pytest.raises(DataError, match="give one of the variant 'dynamic'"):
        replay([graded("a")], [skipped])
    with pytest.raises(DataError, match="1 prompts were not graded, such as b"):
        replay([graded("a")], [group("b")])


def test_a_store_without_the_variant_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="make ablation VARIANTS=dynamic makes them"):
        phases(tmp_path)


def test_draws_of_one_unit_are_resampled_together():
    values = np.array([0.0, 0.0, 1.0, 1.0])
    apart = interval("abcd", lambda at: float(values[at].mean()))
    together = interval("abab", lambda at: float(values[at].mean()))

    assert apart.low < 0.5 == apart.mean < apart.high
    assert (0.5, 0.5, 0.5) == (together.low, together.mean, together.high)
