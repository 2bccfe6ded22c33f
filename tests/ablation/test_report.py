import numpy as np
import pytest

from data_schemas.settings import EvaluationSettings
from tasks.ablation.picture import picture
from tasks.ablation.report import relative_fall, report_of, token_saving
from tasks.ablation.text import findings, markdown, page
from tasks.ablation.variants import select_variants
from tasks.errors import DataError
from tests.ablation.conftest import accuracy_of

SETTINGS = EvaluationSettings(samples=2)
ALL, HALF, NONE = (1, 1), (1, 0), (0, 0)
START = accuracy_of((NONE, NONE))


@pytest.fixture
def study(make_cell):
    """Two seeds: without the stages, zero variance is twice as frequent and less is learned."""
    cells = []
    for seed in (0, 1):
        full = [{"zero_variance/share": 0.2, "zero_variance/trained_share": 0.1}] * 3
        off = [{"zero_variance/share": 0.4, "zero_variance/trained_share": 0.4}] * 3
        cells += [
            make_cell("full", seed, steps=full, solved=[ALL] * 8 + [HALF] * 2),
            make_cell("zv_off", seed, steps=off, solved=[HALF] * 8 + [NONE] * 2),
            make_cell("gspo", seed, steps=full, solved=[(ALL, NONE)[seed]] * 5 + [ALL] * 5),
        ]
    start = accuracy_of([NONE] * 8 + [HALF] * 2)
    return report_of(SETTINGS, select_variants("zv_off,gspo"), cells, start, max_tokens=1000)


def test_a_line_has_the_mean_over_seeds_and_the_paired_difference(study):
    full, off, _ = study.lines

    assert 0.9 == pytest.approx(full.accuracy.mean)
    assert 0.4 == pytest.approx(off.accuracy.mean)
    assert (-0.5, -0.5, -0.5) == pytest.approx(
        (off.difference.mean, off.difference.low, off.difference.high)
    )
    assert (-0.5, -0.5) == pytest.approx(off.seed_differences)
    assert off.certain


def test_tokens_per_point_count_the_accuracy_above_the_start_model(study):
    full, off, _ = study.lines

    assert 0.1 == pytest.approx(study.start.mean)
    # 20 tokens a phase; 80 points against 30.
    assert (20 / 80, 20 / 30) == pytest.approx((full.tokens_per_point, off.tokens_per_point))
    assert 0.0 == full.saving.mean
    assert 1 - 80 / 30 == pytest.approx(off.saving.mean)
    assert off.saving.high < 0.0


def test_a_side_with_half_the_tokens_or_twice_the_gain_saves_half():
    gains = np.array([[0.2] * 10, [0.2] * 10])
    doubled = np.array([[0.4] * 10, [0.2] * 10])

    half = token_saving(gains, 0.5, SETTINGS)
    assert (0.5, 0.5, 0.5) == pytest.approx((half.mean, half.low, half.high))
    assert 0.5 == pytest.approx(token_saving(doubled, 1.0, SETTINGS).mean)


def test_a_variant_without_gain_has_no_tokens_per_point(make_cell):
    cells = [make_cell("full", 0), make_cell("gspo", 0, solved=((0, 0), (0, 0)))]

    report = report_of(SETTINGS, select_variants("gspo"), cells, START, max_tokens=1)

    assert report.lines[1].tokens_per_point is None
    assert "| no gain |" in markdown(report)


def test_seeds_that_disagree_make_a_difference_uncertain(study):
    gspo = study.lines[2]

    assert pytest.approx((0.1, -0.4)) == gspo.seed_differences
    assert not gspo.certain


def test_the_fall_of_the_zero_variance_rate_is_relative_to_all_stages_off(study):
    first, batch = study.falls

    assert (0.4, 0.2, 0.5) == pytest.approx((first.without, first.with_stages, first.relative.mean))
    assert (0.5, 0.5) == pytest.approx(first.seeds)
    assert 0.75 == pytest.approx(batch.relative.mean)


def test_an_interval_of_the_fall_widens_with_the_noise_of_the_steps():
    quiet = relative_fall([0.4] * 10, [0.3] * 10, SETTINGS)
    noisy = relative_fall([0.2, 0.6] * 5, [0.1, 0.5] * 5, SETTINGS)

    assert (0.25, 0.25, 0.25) == pytest.approx((quiet.mean, quiet.low, quiet.high))
    assert noisy.low < 0.25 < noisy.high
    assert 0.25 == pytest.approx(noisy.mean)


def test_the_findings_name_certain_and_uncertain_differences(study):
    said = "\n".join(findings(study))

    assert "same sign for every seed): zv_off (-50.0 [-50.0, -50.0])." in said
    assert "By chance alone 0.1 of 2 intervals exclude 0." in said
    assert "No certain difference: gspo." in said
    assert "first draws: 40.0% with all stages off, 20.0% with all on: a reduction by 50%" in said
    assert "the paper's 17% is exceeded with certainty" in said


def test_the_page_and_the_markdown_hold_every_variant(study):
    drawn = picture(study)

    assert drawn == picture(study)
    for text in (markdown(study), page(study, drawn)):
        assert {line.variant for line in study.lines} == {
            line.variant for line in study.lines if line.meaning in text
        }
    assert "| zv_off | all four stages below off | 3 | 0.500 | 40.0%" in markdown(study)


def test_a_problem_without_verdict_on_one_side_is_in_no_difference(make_cell):
    unjudged = (None, None)
    cells = [
        make_cell("full", 0, solved=(ALL, NONE, unjudged)),
        make_cell("gspo", 0, solved=(HALF, unjudged, ALL)),
    ]

    start = accuracy_of((NONE, NONE, unjudged))
    _, gspo = report_of(SETTINGS, select_variants("gspo"), cells, start, max_tokens=1).lines

    assert (0.75, -0.5) == (gspo.accuracy.mean, gspo.difference.mean)
    assert (-0.5,) == gspo.seed_differences


def test_a_cell_that_is_missing_is_named(make_cell):
    cells = [make_cell("full", 0), make_cell("full", 1), make_cell("gspo", 0)]

    with pytest.raises(DataError, match=r"'gspo' does not have the seeds \(0, 1\)"):
        report_of(SETTINGS, select_variants("gspo"), cells, START, max_tokens=1)


def test_evaluations_on_other_problems_are_not_compared(make_cell):
    cells = [make_cell("full", 0), make_cell("gspo", 0, solved=(ALL,))]

    with pytest.raises(DataError, match="'gspo' used different problems"):
        report_of(SETTINGS, select_variants("gspo"), cells, START, max_tokens=1)
