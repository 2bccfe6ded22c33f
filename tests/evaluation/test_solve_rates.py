"""Each model's solve rate of each problem."""

from tasks.evaluation.solve_rates import measure


def test_every_model_has_its_counts_of_every_problem(make_problem, make_samples):
    problems = {name: make_problem(name) for name in ("a", "b", "c")}
    samples = {
        "small": [*make_samples("b", [0.0, 0.5]), *make_samples("a", [1.0, None, 0.0, 1.0])],
        "large": [*make_samples("a", [1.0, 1.0]), *make_samples("b", [None, None])],
    }

    rates = list(measure(problems, samples))

    assert [
        ("small", "a", 4, 3, 2, 2 / 3),
        ("small", "b", 2, 2, 0, 0.0),  # half of the marks solve nothing
        ("large", "a", 2, 2, 2, 1.0),
        ("large", "b", 2, 0, 0, None),
    ] == [(r.model, r.problem, r.samples, r.scored, r.solved, r.pass_rate) for r in rates]
    assert ("hand", "0" * 64, '{"value":"7"}') == (
        rates[0].source,
        rates[0].source_row,
        rates[0].gold,
    )


def test_what_a_judge_scores_has_no_solve_rate(make_problem, make_samples):
    judged = make_problem("a").model_copy(update={"verifier": "rubric"})

    assert [] == list(measure({"a": judged}, {"small": make_samples("a", [1.0])}))
