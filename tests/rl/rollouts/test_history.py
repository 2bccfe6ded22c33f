from data_schemas.pass_rates import Band, GradedProblem
from tasks.rl.prompts import FADING, GRADED_WEIGHT, PromptHistory, PromptRecord


def graded(problem, rate, tokens=10.0):
    return GradedProblem(
        **problem.model_dump(), pass_rate=rate, mean_tokens=tokens, band=Band.MEDIUM
    )


def test_without_records_nothing_is_predicted(problems):
    history = PromptHistory({})

    assert PromptRecord() == history.of("new")
    assert [None, None] == history.predicted_tokens(problems[:2])


def test_grading_is_the_first_record(problems):
    history = PromptHistory.graded([graded(problems[0], 0.25, 12.0), problems[1]])

    assert history.of(problems[0].id) == PromptRecord(
        solved=0.25 * GRADED_WEIGHT, scored=GRADED_WEIGHT, mean_tokens=12.0
    )
    assert PromptRecord() == history.of(problems[1].id)


def test_older_groups_fade():
    history = PromptHistory({})
    history.remember("p", solved=8, scored=8, lengths=[10] * 8)
    history.remember("p", solved=0, scored=8, lengths=[20] * 8)

    assert (FADING * 8, FADING * 8 + 8) == (history.of("p").solved, history.of("p").scored)
    assert 15.0 == history.of("p").mean_tokens
    assert 0.0 == history.of("p").last_pass_rate


def test_a_group_without_verdicts_changes_only_the_lengths():
    history = PromptHistory({})
    history.remember("p", solved=0, scored=0, lengths=[4, 6], expected=0.5)

    assert 0.0 == history.of("p").scored
    assert history.of("p").last_pass_rate is None
    assert history.of("p").expected_pass_rate is None
    assert 5.0 == history.of("p").mean_tokens


def test_an_unknown_prompt_is_as_long_as_its_domain(problems):
    history = PromptHistory({})
    history.remember(problems[0].id, 1, 2, [30, 50])

    assert [40.0, 40.0] == history.predicted_tokens(problems[:2])


def test_a_new_group_ends_the_count_of_skips():
    history = PromptHistory({})
    history.skipped("p")
    history.skipped("p")
    assert 2 == history.of("p").skips

    history.remember("p", 1, 2, [3])

    assert 0 == history.of("p").skips


def test_the_records_restore_the_history(problems):
    history = PromptHistory({})
    history.remember(problems[0].id, 1, 2, [3])

    assert history.records() == PromptHistory(history.records()).records()
