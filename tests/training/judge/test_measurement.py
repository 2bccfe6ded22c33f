import json

import numpy as np
import pytest

from data_schemas.settings import SFTSettings
from tasks.gym.judging.comparison_prompt import Label, completion
from tasks.gym.judging.scripted import ScriptedJudge, preferring
from tasks.training.judge.measurement import (
    judge_pairs,
    measure,
    most_common_label,
    scalar_verdicts,
)
from tasks.training.judge.measures import Verdicts
from tasks.training.judge.pairs import ComparisonPair
from tasks.training.judge.report import table

SETTINGS = SFTSettings(epochs=1, batch_tokens=1024)
ANSWERS = ("one", "one two", "two one", "one two three")
"""Better with every word; the two in the middle are equal."""


def words(text):
    return len(text.split())


def pair(task, a, b):
    order = words(a) - words(b)
    label = Label.TIE if order == 0 else Label.A if order > 0 else Label.B
    return ComparisonPair(
        id=f"{task}/{a}/{b}", task=task, answer_a=a, answer_b=b, label=label, annotators=(label,)
    )


def pairs_of(tasks):
    return [pair(t, a, b) for t in tasks for n, a in enumerate(ANSWERS) for b in ANSWERS[:n]]


@pytest.fixture
def report_of(tiny_moe, tmp_path):
    """Measure a scripted judge on four tasks; the scalar head is real."""

    def run(script):
        pairs = pairs_of("abc"), pairs_of("wxyz")
        return measure(SETTINGS, ScriptedJudge(script), tiny_moe, pairs, {"too_long": 3}, tmp_path)

    return run


def by_name(report):
    return {found.name: found.judge.mean for found in report.measures}


def test_a_perfect_judge_is_perfect_in_everything(report_of, tmp_path):
    report = report_of(preferring(words))

    assert {
        "3-class accuracy": 1.0,
        "tie recall": 1.0,
        "swap consistency": 1.0,
        "advantage inversion": 0.0,
        "pairs in wrong order": 0.0,
        "ties given an order": 0.0,
    } == by_name(report)
    assert (4, 0) == (report.groups, report.groups_without_verdict)
    assert 1.0 == report.agreements[0].agreement.kappa
    # Five decided pairs of six: both orders together make A right in 5 of 12 verdicts.
    assert 5 / 12 == pytest.approx(report.majority_accuracy.mean)
    assert report.model_dump(mode="json") == json.loads((tmp_path / "report.json").read_bytes())
    assert b"\x89PNG" == (tmp_path / "judge.png").read_bytes()[:4]


def test_a_judge_that_prefers_the_worse_answer_inverts_everything(report_of):
    found = by_name(report_of(preferring(lambda text: -words(text))))

    # The answers in the middle are at the mean: two of four have a direction, 5 of 6 pairs.
    assert 1.0 == found["advantage inversion"]
    assert 5 / 6 == pytest.approx(found["pairs in wrong order"])
    assert (1 / 6, 1.0) == (pytest.approx(found["3-class accuracy"]), found["tie recall"])


def test_a_judge_that_likes_the_first_place_is_inconsistent_and_inverts_nothing(report_of):
    found = by_name(report_of(lambda _: completion(Label.A)))

    assert 0.0 == found["swap consistency"]
    assert 0.0 == found["advantage inversion"]


def test_a_judge_that_cannot_be_read_has_no_groups_and_says_so(report_of):
    report = report_of(lambda _: "well")

    assert (0, 4) == (report.groups, report.groups_without_verdict)
    assert ["3-class accuracy", "tie recall", "swap consistency"] == list(by_name(report))
    assert 4 * 6 * 2 == sum(row["none"] for row in report.judge_confusion.values())
    assert table(report)


def test_verdicts_are_turned_back_to_the_order_of_the_file():
    judge = ScriptedJudge(preferring(words))

    assert [Verdicts(Label.A, Label.A)] == judge_pairs(judge, [pair("t", "one two", "one")])


def test_scores_know_no_order():
    verdicts = scalar_verdicts(np.array([0.5, -0.5, 0.1]), margin=0.1)

    assert [Verdicts(label, label) for label in (Label.A, Label.B, Label.TIE)] == verdicts


def test_the_commonest_label_is_that_of_both_orders():
    decided, tied = pair("t", "one two", "one"), pair("t", "one two", "two one")

    assert Label.A is most_common_label([decided, decided, tied])
    # One decided pair makes A right once in its two orders; a tie makes TIE right twice.
    assert Label.TIE is most_common_label([decided, tied])
