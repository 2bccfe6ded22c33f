from data_schemas.graded import Band, GradedProblem
from tasks.rl.rollouts.history import FADING, GRADED_WEIGHT, History


def graded(problem, rate, tokens=10.0):
    return GradedProblem(
        **problem.model_dump(), pass_rate=rate, mean_tokens=tokens, band=Band.MEDIUM
    )


def test_without_records_nothing_is_predicted(problems):
    history = History({})

    assert history.pass_rate("new") is None
    assert 0.0 == history.zero_variance_probability("new", 8)
    assert [None, None] == history.predicted_tokens(problems[:2])


def test_grading_is_the_first_record(problems):
    history = History.graded([graded(problems[0], 0.25, 12.0), problems[1]])

    assert (0.25 * GRADED_WEIGHT + 0.5) / (GRADED_WEIGHT + 1.0) == history.pass_rate(problems[0].id)
    assert 12.0 == history.of(problems[0].id).mean_tokens
    assert history.pass_rate(problems[1].id) is None


def test_older_groups_fade():
    history = History({})
    history.remember("p", solved=8, scored=8, lengths=[10] * 8)
    history.remember("p", solved=0, scored=8, lengths=[20] * 8)

    assert (FADING * 8 + 0.5) / (FADING * 8 + 8 + 1) == history.pass_rate("p")
    assert 15.0 == history.of("p").mean_tokens
    assert 0.0 == history.of("p").last_pass_rate


def test_a_prompt_that_was_always_solved_is_expected_to_have_zero_variance():
    history = History({})
    chances = []
    for _ in range(3):
        history.remember("p", solved=8, scored=8, lengths=[10])
        chances.append(history.zero_variance_probability("p", 8))

    assert sorted(chances) == chances
    assert 0.6 < chances[0]


def test_a_group_without_verdicts_changes_only_the_lengths():
    history = History({})
    history.remember("p", solved=0, scored=0, lengths=[4, 6])

    assert history.pass_rate("p") is None
    assert history.of("p").last_pass_rate is None
    assert 5.0 == history.of("p").mean_tokens


def test_an_unknown_prompt_is_as_long_as_its_domain(problems):
    history = History({})
    history.remember(problems[0].id, 1, 2, [30, 50])

    assert [40.0, 40.0] == history.predicted_tokens(problems[:2])


def test_a_new_group_ends_the_count_of_skips():
    history = History({})
    history.skipped("p")
    history.skipped("p")
    assert 2 == history.of("p").skips

    history.remember("p", 1, 2, [3])

    assert 0 == history.of("p").skips


def test_the_records_restore_the_history(problems):
    history = History({})
    history.remember(problems[0].id, 1, 2, [3])

    assert history.records() == History(history.records()).records()
