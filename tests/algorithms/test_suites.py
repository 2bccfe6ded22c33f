"""From samples to suites, by hand."""

import logging

import pytest

from data_schemas.rows import Domain
from data_schemas.samples import RequestKind
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.suites import per_problem, suite_scores

SETTINGS = EvaluationSettings(samples=4)


def _scores(samples):
    return {score.suite: score for score in suite_scores(samples, SETTINGS)}


def test_accuracy_is_the_mean_over_problems_not_over_samples(make_samples):
    # Three of four scored samples are right, but problem b has one scored sample only:
    # (2/4 + 1/1) / 2 = 0.75, pooled it would be 3/5.
    samples = make_samples("a", [1.0, 1.0, 0.0, 0.5]) + make_samples("b", [1.0, None, None, None])

    score = _scores(samples)["all"]

    assert 0.75 == score.accuracy
    assert (2.5 / 4 + 1.0) / 2 == score.score  # partial credit counts here only
    assert 1.0 == score.pass_at_k
    assert (2, 3, 4) == (score.problems, score.abstained, score.samples)
    assert score.low <= 0.75 <= score.high


def test_an_abstention_is_not_a_zero(make_samples):
    with_abstention = _scores(make_samples("a", [1.0, None]))["all"]
    with_zero = _scores(make_samples("a", [1.0, 0.0]))["all"]

    assert (1.0, 0.5) == (with_abstention.accuracy, with_zero.accuracy)


def test_a_problem_without_verdict_is_left_out_whole(make_samples):
    score = _scores(make_samples("a", [1.0, 0.0]) + make_samples("b", [None, None]))["all"]

    assert (0.5, 1, 2) == (score.accuracy, score.problems, score.abstained)


def test_a_suite_without_verdict_says_that_it_says_nothing(make_samples, caplog):
    samples = make_samples("a", [1.0]) + make_samples("b", [None, None], domain=Domain.CODE)

    with caplog.at_level(logging.WARNING):
        code = _scores(samples)["domain:code"]

    assert (0, 2, 0.0) == (code.problems, code.abstained, code.accuracy)
    assert "domain:code: no verdict on any of 2 responses" in caplog.text


def test_suites_come_in_reading_order_and_hold_their_own_problems(make_samples):
    samples = (
        make_samples("a", [1.0], domain=Domain.OPEN_TEXT, language="th")
        + make_samples("b", [0.0], domain=Domain.MATHS, language="en")
        + make_samples("c", [0.0], domain=Domain.MATHS, language="th")
    )

    scores = suite_scores(samples, SETTINGS)

    assert [
        ("all", 3, 1 / 3),
        ("domain:maths", 2, 0.0),
        ("domain:open_text", 1, 1.0),
        ("language:en", 1, 0.0),
        ("language:th", 2, 0.5),
        ("source:hand", 3, 1 / 3),
    ] == [(s.suite, s.problems, pytest.approx(s.accuracy)) for s in scores]


def test_levels_are_scored_separately_in_the_order_of_their_numbers(make_samples):
    samples = (
        make_samples("a", [1.0], level=1200)
        + make_samples("b", [1.0, 0.0], level=800)
        + make_samples("c", [0.0], level=800)
        + make_samples("d", [1.0])
    )

    levels = [score for score in suite_scores(samples, SETTINGS) if "level:" in score.suite]

    assert [("level:hand/800", 2, 0.25), ("level:hand/1200", 1, 1.0)] == [
        (score.suite, score.problems, score.accuracy) for score in levels
    ]


def test_the_order_of_samples_within_a_problem_does_not_matter(make_samples):
    samples = make_samples("a", [1.0, 0.0, None, 1.0])

    assert per_problem(samples) == per_problem(samples[::-1])


def test_a_slice_of_the_held_out_set_is_scored_separately_and_so_is_the_first(make_samples):
    first = make_samples("a", [1.0]) + make_samples("b", [0.0])
    later = make_samples("slice=2026-11/c", [1.0])

    before, after = _scores(first), _scores(first + later)

    assert not [suite for suite in before if suite.startswith("slice:")]
    assert (0.5, 1.0) == (after["slice:first"].accuracy, after["slice:2026-11"].accuracy)
    assert before["all"].accuracy == after["slice:first"].accuracy


def test_requests_are_suites_of_their_own_and_no_part_of_what_tasks_earn(make_samples):
    tasks = make_samples("a", [0.0, 1.0])
    harmful = make_samples("h", [1.0, 1.0], request=RequestKind.HARMFUL, language="th")
    harmless = make_samples("k", [0.0, 1.0], request=RequestKind.HARMLESS, language="th")

    alone, beside = _scores(tasks), _scores(tasks + harmful + harmless)

    assert alone["all"] == beside["all"]
    assert "language:th" not in beside
    assert (1.0, 0.5) == (beside["harmful:th"].accuracy, beside["harmless:th"].accuracy)
    # Where nothing but requests was evaluated, they are all there is.
    assert 0.75 == _scores(harmful + harmless)["all"].accuracy


def test_the_most_frequent_answer_decides_and_of_equally_frequent_ones_the_first(make_samples):
    def majority(*samples):
        return _scores([row for rows in samples for row in rows])["all"].majority_at_k

    right = make_samples("a", [0.0, 1.0, 1.0, 0.0], answers=["8", "7", "7", ""])
    tied = make_samples("b", [0.0, 1.0, 1.0, 0.0], answers=["8", "7", "7", "8"])
    unscored = make_samples("c", [None, None, 1.0, 0.0], answers=["8", "8", "7", ""])
    silent = make_samples("d", [0.0, 0.0], answers=["", ""])

    assert (1.0, 0.0, 1.0, 0.0) == tuple(map(majority, (right, tied, unscored, silent)))
    assert 0.5 == majority(right, tied)


def test_a_suite_with_answers_that_cannot_be_counted_has_no_majority(make_samples):
    counted, program = make_samples("a", [1.0], answers=["7"]), make_samples("b", [1.0])

    assert _scores(counted + program)["all"].majority_at_k is None


def test_lengths_and_truncation_count_every_response(make_samples):
    rows = make_samples("a", [1.0, None])
    rows[1] = rows[1].model_copy(update={"tokens": 11, "truncated": True})

    score = _scores(rows)["all"]

    assert (8.0, 1) == (score.mean_tokens, score.truncated)
