import dataclasses

from data_schemas.ledgers import GroupOutcome
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rl_settings import NO_SKIPS, ZeroVarianceSettings
from data_schemas.rows import Domain
from tasks.durability import states
from tasks.rl import state
from tasks.rl.collector import first_state
from tasks.rl.learned import learned_in, read_learned
from tasks.rl.phase import finish, train
from tasks.rl.prompts import CurriculumPosition, PromptRecord

BANDS = ((0.4, 0.9), (0.0, 0.3))


def graded(problem, rate):
    return GradedProblem(**problem.model_dump(), pass_rate=rate, mean_tokens=1.0, band=Band.MEDIUM)


def with_bands(settings, *bands):
    zero_variance = ZeroVarianceSettings(curriculum=bands, skip=NO_SKIPS)
    return settings.model_copy(update={"zero_variance": zero_variance})


def test_a_phase_starts_from_what_the_phase_before_learned_of_each_prompt(settings, problems):
    rows = [graded(problem, 0.5) for problem in problems[:3]]
    known = PromptRecord(solved=7.0, scored=8.0, mean_tokens=5.0, skips=2)
    gone = {rows[1].id: known, "of another phase": known}
    before = learned_in(settings, gone, CurriculumPosition())

    records = first_state(settings, rows, before).records

    assert {row.id for row in rows} == records.keys()
    assert known == records[rows[1].id]
    assert (2.0, 4.0) == (records[rows[0].id].solved, records[rows[0].id].scored)


def test_a_second_phase_goes_on_with_the_curriculum_of_the_first(settings, problems):
    position = CurriculumPosition(number=1, best=0.6, since=3)
    bands = with_bands(settings, *BANDS)
    before = learned_in(bands, {}, position)

    assert position == first_state(bands, problems, before).stage
    other = bands.model_copy(update={"domains": {Domain.CODE: 1.0}})
    for changed in (with_bands(settings, BANDS[1]), with_bands(settings), other):
        assert CurriculumPosition() == first_state(changed, problems, before).stage


def test_what_a_phase_leaves_behind_is_where_the_next_one_begins(
    phase_in, problems, scorer, settings, tmp_path
):
    rates = [0.5] * 6 + [0.1] * 6
    rows = tuple(graded(*pair) for pair in zip(problems, rates, strict=True))
    bands = with_bands(settings, *BANDS)
    first = dataclasses.replace(
        phase_in(tmp_path / "first", steps=2, zero_variance=bands.zero_variance), problems=rows
    )
    list(train(first, scorer()))
    report, model = tmp_path / "report", tmp_path / "model"
    report.mkdir()
    model.mkdir()
    finish(first, model, report)
    learned = read_learned(report)
    assert learned is not None
    left = state.decode(states.read_file(first.state, 2, state.INFLIGHT_FILE), rows).collector
    assert left.records == learned.records
    last_band = learned.model_copy(update={"position": CurriculumPosition(number=1)})

    second = dataclasses.replace(
        first, state=tmp_path / "second", start=model, problems=rows, before=last_band
    )
    record = next(iter(train(second, scorer())))

    drawn = {
        row.problem_id for row in record.ledger if row.outcome is not GroupOutcome.SKIPPED_BAND
    }
    assert drawn <= {row.id for row in rows[6:]}


def test_a_phase_without_steps_has_learned_nothing(tmp_path):
    assert read_learned(tmp_path) is None
