"""Numbers as people read them."""

import pytest

from tasks.pages import wording


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (75.2, "1 min 15 s"),
        (3661, "1 h 1 min"),
    ],
)
def test_durations_round_without_gaps(seconds, text):
    assert text == wording.duration(seconds).replace(wording.NBSP, " ")


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (0.1425, "+14.2"),
        (-0.06, "\N{MINUS SIGN}6.0"),
        (0.0, "0.0"),
        (-0.0004, "0.0"),
        (0.0006, "+0.1"),
    ],
)
def test_points_carry_their_sign_unless_they_round_to_nothing(difference, text):
    assert text == wording.signed_points(difference)


def test_suites_lose_their_kind():
    assert "tool use" == wording.suite_label("domain:tool_use")
    assert "zh-TW" == wording.suite_label("language:zh-TW")
