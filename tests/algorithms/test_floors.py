"""Families in which a model is no better than a text that does no task count in no headline."""

from data_schemas.reports import Comparison, EchoScore, EvaluationReport, SuiteScore
from tasks.algorithms.floors import at_floor, floor_sentence, overall_gain, overall_score
from tests.records import filled, suite_score


def suite(name: str, accuracy: float, problems: int) -> SuiteScore:
    return suite_score(accuracy, suite=name, problems=problems)


def report(low: float | None) -> EvaluationReport:
    """Maths with 0.4 on 100 problems, choice with 0.5 on 300; the text of choice earns 0.48."""
    return filled(
        EvaluationReport,
        model="rl/two",
        suites=(
            suite("all", 0.475, 400),
            suite("domain:maths", 0.4, 100),
            suite("domain:choice", 0.5, 300),
        ),
        echoes=(
            EchoScore(
                suite="domain:choice",
                text="second option",
                score=0.48,
                accuracy=0.48,
                problems=300,
                difference=0.02 if low is not None else None,
                low=low,
                high=0.08 if low is not None else None,
            ),
        ),
    )


def gain(name: str, difference: float, problems: int) -> Comparison:
    return Comparison(
        suite=name,
        parent="base",
        difference=difference,
        low=difference - 0.02,
        high=difference + 0.02,
        problems=problems,
    )


GAINS = (gain("all", 0.175, 400), gain("domain:maths", 0.1, 100), gain("domain:choice", 0.2, 300))


def test_a_family_at_its_floor_counts_neither_in_accuracy_nor_in_gain() -> None:
    one = report(-0.01)
    score, difference = overall_score(one), overall_gain(one, GAINS)

    assert score is not None
    assert difference is not None
    assert (0.4, 100, 0.1) == (score.accuracy, score.problems, difference.difference)
    assert floor_sentence(one) == (
        "Not told from a text that does no task, and in no headline: choice ('second option' has "
        "48.0 %, the model +2.0 points, interval -1.0 to +8.0)."
    )


def test_without_a_floor_the_whole_is_what_was_measured() -> None:
    for one in (report(0.01), report(None)):
        assert [] == at_floor(one)
        assert (one.suites[0], GAINS[0]) == (overall_score(one), overall_gain(one, GAINS))
        assert "" == floor_sentence(one)


def test_a_model_at_every_floor_has_no_headline() -> None:
    one = report(0.0)
    only = one.model_copy(update={"suites": (one.suites[0], one.suites[2])})

    assert overall_score(only) is None
    assert overall_gain(only, [GAINS[0], GAINS[2]]) is None
