"""What the seconds of one core and of two say of eight, and what is refused."""

import pytest

from tasks.errors import DataError
from tests.bench.cores import TimedRun, seconds_on, serial_share, summary


def test_a_fifth_that_is_serial_is_found_and_continued():
    # 100 s, of which 20 are serial: 20 + 80 / 2 on two cores, 20 + 80 / 8 on eight.
    assert pytest.approx(0.2) == serial_share(100, 60, 2)
    assert pytest.approx(30) == seconds_on(8, 100, 0.2)


def test_runs_are_compared_round_by_round():
    runs = [
        TimedRun(cores, seconds, 100.0, "same")
        for cores, seconds in ((1, 100.0), (2, 60.0), (1, 200.0), (2, 130.0))
    ]

    result = summary(runs)

    assert (0.625, 0.6, 0.65) == (result["ratio"], result["low"], result["high"])
    assert "same" == result["digest"]


def test_weights_that_depend_on_the_number_of_cores_are_no_result():
    with pytest.raises(DataError, match="depend on the number of cores"):
        summary([TimedRun(1, 9.0, 9.0, "one"), TimedRun(2, 5.0, 9.0, "other")])
