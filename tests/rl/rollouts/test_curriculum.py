from data_schemas.pass_rates import Band, GradedProblem
from tasks.rl.prompts import PLATEAU_STEPS, CurriculumPosition, after_step, in_band

BANDS = ((0.4, 0.9), (0.15, 0.6))


def graded(problem, rate):
    return GradedProblem(**problem.model_dump(), pass_rate=rate, mean_tokens=1.0, band=Band.MEDIUM)


def test_a_band_holds_its_lower_end_and_not_its_upper(problems):
    rates = [0.39, 0.4, 0.89, 0.9]

    assert [False, True, True, False] == [
        in_band(graded(problems[0], rate), BANDS, CurriculumPosition()) for rate in rates
    ]


def test_what_was_never_graded_fits_every_stage(problems):
    assert in_band(problems[0], BANDS, CurriculumPosition())
    assert in_band(graded(problems[0], None), BANDS, CurriculumPosition())
    assert in_band(graded(problems[0], 0.0), (), CurriculumPosition())


def test_the_next_stage_begins_when_the_accuracy_no_longer_rises():
    stage = after_step(CurriculumPosition(), 0.5, len(BANDS))
    for _ in range(PLATEAU_STEPS - 1):
        stage = after_step(stage, 0.5, len(BANDS))
        assert 0 == stage.number

    assert CurriculumPosition(number=1) == after_step(stage, 0.4, len(BANDS))


def test_a_better_step_starts_the_count_anew():
    stage = after_step(CurriculumPosition(best=0.5, since=PLATEAU_STEPS - 2), 0.6, len(BANDS))

    assert CurriculumPosition(best=0.6, since=0) == stage


def test_the_last_stage_never_ends():
    stage = CurriculumPosition(number=1, best=0.9, since=PLATEAU_STEPS)

    assert 1 == after_step(stage, 0.1, len(BANDS)).number
    assert 0 == after_step(CurriculumPosition(since=10 * PLATEAU_STEPS), 0.0, 0).number
