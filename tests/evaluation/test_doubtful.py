"""Which gold answers people are asked to look at."""

from tasks.evaluation.doubtful_golds import OTHER_ANSWER, UNSOLVED, find


def answered(make_samples, problem, answers, gold="7"):
    """Samples that gave these answers; None has no verdict."""
    scores = [None if answer is None else float(answer == gold) for answer in answers]
    return make_samples(problem, scores, answers=answers)


def doubts(make_problem, make_samples, small, large):
    samples = {
        "small": [row for name in small for row in answered(make_samples, name, small[name])],
        "large": [row for name in large for row in answered(make_samples, name, large[name])],
    }
    return find({name: make_problem(name) for name in small}, samples)


def test_what_models_agree_on_against_the_gold_comes_before_what_nobody_solved(
    make_problem, make_samples
):
    small = {
        "both right": ["7", "7"],
        "one right": ["3", "4"],
        "nobody": ["3", "4"],
        "agree": ["8", "8", "7"],
        "tie": ["8", "7"],
        "no answer": ["", ""],
    }
    large = {
        "both right": ["7", "8"],
        "one right": ["7", "5"],
        "nobody": ["5", "6"],
        "agree": ["8", "8", "5"],
        "tie": ["8", "7"],
        "no answer": ["", "3"],
    }

    found = doubts(make_problem, make_samples, small, large)

    assert [("agree", OTHER_ANSWER), ("no answer", UNSOLVED), ("nobody", UNSOLVED)] == [
        (one.problem, one.reason) for one in found
    ]
    assert {"small": {"8": 2, "7": 1}, "large": {"8": 2, "5": 1}} == found[0].answers
    assert ('{"value":"7"}', "") == (found[0].gold, found[0].decision.value)


def test_a_problem_that_a_model_has_no_verdict_for_is_left_out(make_problem, make_samples):
    small, large = {"a": ["3"], "b": ["3"]}, {"a": [None], "b": ["4"]}

    assert ["b"] == [one.problem for one in doubts(make_problem, make_samples, small, large)]


def test_one_model_alone_doubts_nothing(make_problem, make_samples):
    samples = {"small": answered(make_samples, "a", ["3"])}

    assert [] == find({"a": make_problem("a")}, samples)


def test_what_people_decided_and_what_a_judge_scored_is_left_out(make_problem, make_samples):
    samples = {
        name: [row for one in "abc" for row in answered(make_samples, one, ["3"])]
        for name in ("small", "large")
    }
    problems = {name: make_problem(name) for name in "abc"}
    problems["b"] = problems["b"].model_copy(update={"verifier": "rubric"})

    assert ["a"] == [one.problem for one in find(problems, samples, decided=["c"])]
