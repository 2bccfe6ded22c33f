"""Texts are folded, and what carries a value stays apart."""

import pytest

from tasks.algorithms.folding import folded


@pytest.mark.parametrize(
    ("one", "other"),
    [("10²", "102"), ("5³", "53"), ("3½ inch", "31/2 inch"), ("10⁻³", "10-3"), ("1¼", "11/4")],
)
def test_what_differs_in_value_stays_different(one: str, other: str) -> None:
    assert folded(one) != folded(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10²³", "10^23"),
        ("3½ inch", "3 1/2  INCH"),
        ("ＸＬ　１２", "xl 12"),  # noqa: RUF001
        ("10⁻³", "10^-3"),
        ("Straße", "STRASSE"),
    ],
)
def test_what_differs_in_width_case_or_blanks_is_equal(one: str, other: str) -> None:
    assert folded(one) == folded(other)
