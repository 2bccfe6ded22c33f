"""A judge whose verdicts are known, on responses whose rule score is known."""

import pytest
from rich.console import Console

from data_schemas.arrow import write_table
from data_schemas.rows import HELD_OUT, Domain, Problem
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.errors import SettingsError
from tasks.gym.judging.scripted import ScriptedJudge, preferring
from tasks.training.judge.against_rule import compare_with_rule, main, table
from tests.records import filled, problem_of


def problem(name: str, verifier: str = "reference_text") -> Problem:
    return problem_of(
        f"Tidy: {name} red",
        '{"reference":"red boot"}',
        id=name,
        domain=Domain.OPEN_TEXT,
        verifier=verifier,
    )


def sample(name: str, number: int, text: str, score: float, reason: str = "") -> SampleResult:
    return filled(
        SampleResult,
        problem_id=name,
        domain=Domain.OPEN_TEXT,
        sample=number,
        text=text,
        score=score,
        reason=reason or ("correct" if score == 1.0 else "partial"),
        tokens=3,
        surprisal_nats=1.0,
    )


PROBLEMS = [problem("one"), problem("two"), problem("maths", "final_answer")]
SAMPLES = [
    sample("one", 0, "red boot", 1.0),
    sample("one", 1, "blue boot", 0.6),
    sample("one", 2, "red boot SALE!", 0.8),
    sample("one", 3, "<think>never ends", 0.0, "no_answer"),
    sample("two", 0, "red", 0.3),
    sample("two", 1, "RED BOOT", 1.0),
    sample("maths", 0, "red boot", 1.0),
]


def counted(judge):
    return compare_with_rule(judge, PROBLEMS, SAMPLES)


def test_a_judge_that_decides_as_the_rule_agrees_on_every_response():
    found = counted(ScriptedJudge(preferring(lambda text: float(text.casefold() == "red boot"))))

    assert (6, 3, 3, 0) == (found.responses, found.wrong, found.wrong_lose, found.wrong_unjudged)
    assert (2, 2) == (found.right, found.right_tie)
    assert (4, 4, 0) == (found.ordered, found.as_rule, found.inverted)
    assert (2, 0) == (found.groups, found.flat)


def test_a_judge_of_slogans_alone_finds_no_other_fault():
    found = counted(ScriptedJudge(preferring(lambda text: float("SALE" not in text))))

    assert (3, 1) == (found.wrong, found.wrong_lose)
    assert (4, 2, 0) == (found.ordered, found.as_rule, found.inverted)
    assert (2, 1) == (found.groups, found.flat)


def test_a_judge_that_prefers_faults_ties_them_with_the_reference():
    found = counted(ScriptedJudge(preferring(lambda text: float(text != "red boot"))))

    assert (0, 0, 2) == (found.wrong_lose, found.inverted, found.flat)


def test_a_judge_that_is_down_is_counted_and_orders_nothing():
    found = counted(ScriptedJudge(lambda _: None))

    assert (3, 0, 3) == (found.wrong, found.wrong_lose, found.wrong_unjudged)
    assert (1, 1) == (found.ordered, found.as_rule)  # the reference itself ties without a judge


def test_the_table_has_counts_and_shares(capsys):
    found = counted(ScriptedJudge(preferring(lambda text: float("SALE" not in text))))

    Console(width=80).print(table(found))

    assert (
        "wrong answers that lose to the reference │  3 │     1 │  33.3%" in capsys.readouterr().out
    )


def test_folders_in_the_wrong_order_are_refused_by_name(tmp_path):
    write_table(tmp_path / HELD_OUT, Problem, PROBLEMS)
    with pytest.raises(SettingsError, match=SAMPLES_FILE):
        main([str(tmp_path), str(tmp_path), str(tmp_path)])
