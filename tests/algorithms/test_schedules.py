import pytest

from tasks.algorithms.schedules import warmup_constant, warmup_cosine


def test_constant_rises_then_stays():
    rates = [warmup_constant(update, peak=1.0, warmup=4) for update in range(6)]

    assert [0.25, 0.5, 0.75, 1.0, 1.0, 1.0] == rates


def test_cosine_rises_peaks_and_ends_at_zero():
    rates = [warmup_cosine(update, peak=2.0, warmup=2, total=6) for update in range(7)]

    assert [1.0, 2.0, 2.0] == rates[:3]
    assert 1.0 == pytest.approx(rates[4])
    assert 0.0 == pytest.approx(rates[6])


def test_no_warm_up_starts_at_the_peak():
    assert 3.0 == warmup_constant(0, peak=3.0, warmup=0)
    assert 3.0 == warmup_cosine(0, peak=3.0, warmup=0, total=9)
