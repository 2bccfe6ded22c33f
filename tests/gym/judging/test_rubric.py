"""Rubrics judged criterion by criterion, with judges whose mind is known."""

import json

import pytest

from data_schemas.rows import Message, Role
from tasks.gym.judging import rubric
from tasks.gym.judging.comparison_prompt import sections
from tasks.gym.judging.scripted import ScriptedJudge
from tasks.gym.maths import final_answer
from tests.tables import for_each

TABLE = {"final_answer": final_answer.verify}
POINTS = (("short", 5), ("polite", 3), ("shouts", -6), ("red", 2))


def rubric_of(*criteria, aggregation="ruscarl"):
    rows = [
        {"criterion": text, "points": float(points), **dict(*more)}
        for text, points, *more in criteria
    ]
    return {"criteria": rows, "aggregation": aggregation}


def contains():
    """A judge to whom a criterion is met if the answer contains it."""

    def script(prompt):
        parts = sections(prompt)
        met = parts["Criterion"] in parts["Answer"]
        return json.dumps({"explanation": "read it", "criteria_met": met})

    return ScriptedJudge(script)


def verdict_of(problem, gold, answer, judge=None):
    return rubric.verifier(judge or contains(), TABLE)(problem("rubric", gold), answer)


def test_the_rubric_vector_holds_and_every_criterion_is_one_question(problem):
    judge = contains()
    verdict = verdict_of(problem, rubric_of(*POINTS), "short shouts red", judge)

    assert 0.1 == pytest.approx(verdict.score)
    assert "partial" == verdict.reason
    assert 4 == judge.calls.asked


def test_a_negative_score_counts_zero_and_stays_in_the_detail(problem):
    verdict = verdict_of(problem, rubric_of(*POINTS), "shouts")

    assert (0.0, "none_met") == (verdict.score, verdict.reason)
    assert "-0.600" in verdict.detail


def test_all_positive_points_are_a_solved_task(problem):
    verdict = verdict_of(problem, rubric_of(*POINTS), "short polite red")

    assert verdict.solved
    assert "all_met" == verdict.reason


def test_a_failed_veto_leaves_nothing_of_a_rubicon(problem):
    gold = rubric_of(("short", 3), ("safe", 1, {"veto": True}), aggregation="rubicon")

    assert (0.0, "vetoed") == (
        verdict_of(problem, gold, "short").score,
        verdict_of(problem, gold, "short").reason,
    )
    assert 0.25 == pytest.approx(verdict_of(problem, gold, "safe").score)
    assert 1.0 == verdict_of(problem, gold, "short and safe").score


def test_a_pair_that_interacts_and_a_stretched_region_change_a_rubicon(problem):
    plain = rubric_of(("short", 1), ("kind", 1), aggregation="rubicon")
    together = plain | {"interactions": [[0, 1, 2.0]]}
    stretched = plain | {"shaping": [0.5, 0.8]}

    assert 0.5 == verdict_of(problem, plain, "short").score
    assert 0.25 == verdict_of(problem, together, "short").score
    assert 0.2 == pytest.approx(verdict_of(problem, stretched, "short").score)
    for gold in (plain, together, stretched):
        assert 1.0 == verdict_of(problem, gold, "short and kind").score


def by_tier(tier):
    """A judge that names a tier, and meets every criterion without one."""

    def script(prompt):
        last = ("tier", tier) if "Tiers" in sections(prompt) else ("criteria_met", True)
        return json.dumps(dict([("explanation", "read it"), last]))

    return ScriptedJudge(script)


TIERED = {"tiers": ["no reason", "a reason", "a reason that the customer can check"]}


@pytest.mark.parametrize(("tier", "score"), [(0, 0.0), (1, 0.731059), (2, 1.0)])
def test_a_tier_is_scored_evenly_and_saturates(problem, tier, score):
    """f(0.5) = (1 - exp(-1)) / (1 - exp(-2)) with c = 2."""
    gold = rubric_of(("gives reasons", 1, TIERED), aggregation="rubicon")
    judge = by_tier(tier)

    assert score == pytest.approx(verdict_of(problem, gold, "text", judge).score, abs=2e-6)
    assert 1 == judge.calls.asked


def test_tiers_stand_beside_criteria_without_and_a_veto_reads_them(problem):
    gold = rubric_of(("short", 1), ("gives reasons", 1, TIERED), aggregation="rubicon")
    critical = rubric_of(("gives reasons", 1, TIERED | {"veto": True}), aggregation="rubicon")

    assert 0.5 == verdict_of(problem, gold, "text", by_tier(0)).score
    assert "vetoed" == verdict_of(problem, critical, "text", by_tier(0)).reason
    assert "partial" == verdict_of(problem, critical, "text", by_tier(1)).reason


@for_each("tier", [3, -1, True, "1", 0.5])
def test_a_tier_that_there_is_not_leaves_no_verdict_after_one_more_question(problem, tier):
    gold = rubric_of(("gives reasons", 1, TIERED), aggregation="rubicon")
    judge = by_tier(tier)

    assert "judge_unparsable" == verdict_of(problem, gold, "text", judge).reason
    assert 2 == judge.calls.asked


def test_a_criterion_may_name_a_verifier_instead_of_the_judge(problem):
    judge = contains()
    checked = ("the sum is 7", 4, {"verifier": "final_answer", "answer": {"value": "7"}})
    gold = rubric_of(checked, ("short", 4))

    assert 0.5 == verdict_of(problem, gold, "The answer is 7.", judge).score
    assert 1.0 == verdict_of(problem, gold, "In short: the answer is 7.", judge).score
    assert 2 == judge.calls.asked


def test_a_verifier_that_abstains_leaves_the_rubric_without_a_verdict(problem):
    gold = rubric_of(("sum", 4, {"verifier": "final_answer", "answer": {"valu": "7"}}))
    verdict = verdict_of(problem, gold, "The answer is 7.")

    assert (None, "bad_gold") == (verdict.score, verdict.reason)


WISHES = ("budget", "size", "return window", "warranty", "two options", "no upsell")
"""A mission of several turns whose criteria have weights, are met or not, and may be penalties: the
shape of Shopping Reasoning Bench (2606.12608), whose rows are behind a form. Written by hand."""


@for_each("bits", range(2 ** len(WISHES)))
def test_the_weights_of_a_mission_of_several_turns_add_up_for_every_answer(problem, bits):
    points = [5, 5, 3, 1, 1, -4]
    tasks = list[str]()

    def script(prompt):
        parts = sections(prompt)
        tasks.append(parts["Task"])
        return json.dumps({"criteria_met": parts["Criterion"] in parts["Answer"]})

    turns = ("I need a tent for two.", "Do you camp in winter?", "No. At most $200.")
    roles = (Role.USER, Role.ASSISTANT, Role.USER)
    mission = problem("rubric", rubric_of(*zip(WISHES, points, strict=True))).model_copy(
        update={
            "messages": tuple(
                Message(role=role, content=text) for role, text in zip(roles, turns, strict=True)
            )
        }
    )
    met = [place for place in range(len(WISHES)) if bits >> place & 1]

    answer = ". ".join(["Take the blue one", *(WISHES[place] for place in met)])
    verdict = rubric.verifier(ScriptedJudge(script), TABLE)(mission, answer)

    expected = sum(points[place] for place in met) / 15  # 5 + 5 + 3 + 1 + 1
    assert max(expected, 0.0) == pytest.approx(verdict.score)
    dialogue = (
        "user: I need a tent for two.\nassistant: Do you camp in winter?\nuser: No. At most $200."
    )
    assert [dialogue] * len(WISHES) == tasks


@pytest.mark.parametrize(
    ("reply", "reason", "asked"), [(None, "judge_unavailable", 4), ("yes", "judge_unparsable", 8)]
)
def test_a_criterion_nobody_judged_is_not_a_criterion_failed(problem, reply, reason, asked):
    judge = ScriptedJudge(lambda _: reply)
    verdict = verdict_of(problem, rubric_of(*POINTS), "short", judge)

    assert (None, reason) == (verdict.score, verdict.reason)
    assert asked == judge.calls.asked


@for_each(
    ("gold", "says"),
    [
        (rubric_of(("rude", -3)), "no criterion has positive points"),
        (rubric_of(("a", 1), ("b", -1), aggregation="rubicon"), "cannot be negative"),
        (rubric_of(("a", 1, {"veto": True})), "ruscarl has no veto"),
        (rubric_of(("a", 1, {"verifier": "magic"})), "'magic' is none of final_answer"),
        (rubric_of(("a", 1)) | {"interactions": [[0, 1, 1.0]]}, "ruscarl has neither"),
        (rubric_of(("a", 1)) | {"shaping": [0.5, 0.5]}, "ruscarl has neither"),
        (
            rubric_of(("a", 1), aggregation="rubicon") | {"interactions": [[0, 1, 1.0]]},
            "interaction of 0 and 1: use two of the criteria",
        ),
        (
            rubric_of(("a", 1), aggregation="rubicon") | {"shaping": [0.5, 1.0]},
            "shaping needs a knee and a share in (0, 1)",
        ),
        (rubric_of(("a", 1, TIERED)), "ruscarl has no tiers"),
        (rubric_of(("a", 1, {"tiers": ["x"]}), aggregation="rubicon"), "two or more different"),
        (rubric_of(("a", 1, {"tiers": ["x", "x"]}), aggregation="rubicon"), "two or more"),
        (
            rubric_of(("a", 1, TIERED | {"verifier": "final_answer"}), aggregation="rubicon"),
            "no verifier",
        ),
        ({"criteria": [], "aggregation": "ruscarl"}, "criteria"),
        (rubric_of(("a", 1), aggregation="mean"), "aggregation"),
    ],
)
def test_a_rubric_that_makes_no_sense_is_an_abstention(problem, gold, says):
    verdict = verdict_of(problem, gold, "text")

    assert (None, "bad_gold") == (verdict.score, verdict.reason)
    assert says in verdict.detail


def test_no_answer_earns_nothing_without_a_question(problem):
    judge = contains()

    assert (0.0, "no_answer") == (
        verdict_of(problem, rubric_of(*POINTS), "<think>short", judge).score,
        verdict_of(problem, rubric_of(*POINTS), " ", judge).reason,
    )
    assert 0 == judge.calls.asked
