"""The boundary around the verifiers, and the canaries that watch them."""

import hostile
import pytest

from data_schemas.rl_settings import JudgeSettings, MathsReward, RewardSettings
from data_schemas.verdicts import scored
from tasks.errors import EngineError, SettingsError
from tasks.gym import binding, table
from tasks.gym.degenerate import is_scored
from tasks.gym.maths import rule_answer
from tasks.gym.references import Trial, try_references
from tasks.gym.scoring import canaries
from tasks.gym.scoring.canaries import CANARIES, check_canaries
from tasks.plugins import pin


@pytest.fixture(scope="module", autouse=True)
def _nothing_stays():
    yield
    table.close()


def test_a_batch_is_scored_in_order(problem) -> None:
    problems = [
        problem("final_answer", {"value": "1"}),
        problem("choice", {"correct": ["a bag"]}),
        problem("final_answer", {"value": "2"}),
    ]
    verdicts = table.score_batch(problems, ["1", "a bag", "1"])

    assert [1.0, 1.0, 0.0] == [verdict.score for verdict in verdicts]


def test_a_verifier_that_raises_is_an_abstention_named_after_the_error(
    problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(problem, response):
        raise ZeroDivisionError("boom")

    monkeypatch.setitem(table.VERIFIERS, "choice", broken)
    problems = [problem("choice", {}), problem("final_answer", {"value": "1"})]
    first, second = table.score_batch(problems, ["x", "1"])

    assert (None, "verifier_error:choice:ZeroDivisionError", "boom") == (
        first.score,
        first.reason,
        first.detail,
    )
    assert 1.0 == second.score


def test_a_response_that_makes_its_verifier_raise_is_at_fault(
    problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table.VERIFIERS, "choice", hostile.breaks_on_bombs)
    one = problem("choice", {})
    bomb, disk, fine = table.score_batch([one] * 3, ["raise", "disk", "x"])

    assert (0.0, "response_fault:verifier_error:choice:IndexError") == (bomb.score, bomb.reason)
    assert (None, "verifier_error:choice:OSError") == (disk.score, disk.reason)
    assert 0.5 == fine.score


def test_the_rule_verifier_rewards_final_answers_if_the_settings_say_so(problem) -> None:
    sentence = "So the answer is 4."  # neither a box nor a marked line
    one = problem("final_answer", {"value": "4"})
    by_rule = binding.verifiers(RewardSettings(maths=MathsReward.RULE))
    by_value = binding.verifiers(RewardSettings())

    assert rule_answer.verify is by_rule["final_answer"]
    assert (0.0, 1.0) == tuple(
        bound["final_answer"](one, sentence).score for bound in (by_rule, by_value)
    )
    canaries.check(
        lambda problems, texts: [
            by_rule[problem.verifier](problem, text)
            for problem, text in zip(problems, texts, strict=True)
        ],
        ["final_answer", "rule_answer"],
    )


def test_an_unknown_verifier_stops_the_batch_before_anything_is_scored(problem) -> None:
    with pytest.raises(SettingsError, match=r"verifier 'nobody' does not exist\. Use one of bfcl"):
        table.score_batch([problem("nobody", {})], ["x"])


def test_what_the_user_must_fix_is_raised_and_not_counted(
    problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unset(problem, response):
        raise SettingsError("set it")

    monkeypatch.setitem(table.VERIFIERS, "choice", unset)
    with pytest.raises(SettingsError, match="set it"):
        table.score_batch([problem("choice", {})], ["x"])


def test_a_batch_of_unequal_lengths_is_refused(problem) -> None:
    with pytest.raises(ValueError, match="zip"):
        table.score_batch([problem("choice", {"correct": ["x"]})], [])


def test_a_batch_keeps_its_order_and_marks_abstentions(problem) -> None:
    one = problem("final_answer", {"value": "1"})
    verdicts = table.score_batch([one, one, one, problem("final_answer", {})], ["1", "2", "1", "1"])

    assert ["correct", "wrong", "correct", "bad_gold"] == [one.reason for one in verdicts]
    assert [False, False, False, True] == [one.abstained for one in verdicts]


def test_every_verifier_has_a_canary_and_all_sing() -> None:
    assert table.VERIFIERS.keys() == {canary.verifier for canary in CANARIES}
    check_canaries()


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_a_verifier_with_one_verdict_for_everything_is_caught(
    score: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table.VERIFIERS, "extraction", lambda p, r: scored(score, "same"))
    with pytest.raises(EngineError, match=r"verifier extraction scored .* must"):
        check_canaries()


def test_the_table_can_be_used_again_after_closing(problem) -> None:
    one = problem("code_tests", {"tests": ["assert f() == 1"]})
    table.close()
    table.close()

    assert 1.0 == table.score_batch([one], ["def f(): return 1"])[0].score


MINE = """
from data_schemas.verdicts import scored


class Opinion:
    judged = True

    def __call__(self, problem, response):
        return scored(0.5, "opinion")


class Sign(Opinion):
    judged, signed = False, True


class Odd(Opinion):
    signed = "yes"


def plain(problem, response):
    return scored(1.0, "plain")
"""


@pytest.fixture
def mine(tmp_path, monkeypatch: pytest.MonkeyPatch, problem):
    """Make problems of verifiers in a file of a user's own."""
    (tmp_path / "flags.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return lambda name: problem(pin(f"flags.py:{name}"), {"value": "4"})


def test_a_verifier_of_ones_own_declares_what_an_entry_of_the_table_does(problem, mine) -> None:
    judged, signed, plain = mine("Opinion"), mine("Sign"), mine("plain")

    assert [True, False, False] == [table.is_judged(one) for one in (judged, signed, plain)]
    assert [False, True, False] == [table.is_signed(one) for one in (judged, signed, plain)]
    assert table.is_signed(problem("rule_answer", {}))
    assert not table.is_judged(problem("nobody", {}))
    bound = binding.entries(RewardSettings())
    assert bound[judged.verifier].judged
    assert bound["code_tests"].runs_gold


def test_a_declaration_that_is_neither_true_nor_false_is_refused_by_name(mine) -> None:
    with pytest.raises(SettingsError, match=r"flags\.py:Odd: signed is 'yes'; use True or False"):
        table.is_signed(mine("Odd"))


def test_a_judge_of_ones_own_needs_none_of_the_settings_and_has_no_reference(mine) -> None:
    opinion = mine("Opinion")
    table.require_judge(JudgeSettings(), "rewards.judge", [opinion])

    assert not is_scored(opinion)
    assert [Trial(opinion)] == try_references([opinion], [()], table.score_batch)
    assert table.score_batch([opinion], ["4"])[0].score == 0.5


def test_a_problem_that_needs_a_judge_says_how_to_get_one(problem) -> None:
    gold = {"mode": "reference", "reference": "Red shoes"}
    with pytest.raises(SettingsError, match=r"needs a judge and rewards\.judge\.kind is none"):
        table.score_batch([problem("generative_judge", gold)], ["Blue shoes"])
