"""Texts are folded, and what carries a value stays apart."""

# ruff: noqa: RUF001 - signs that people type
import itertools

from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.folding import folded, unified, visible
from tests.tables import for_each

_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"


@for_each(
    ("one", "other"),
    [
        ("10²", "102"),
        ("5³", "53"),
        ("3½ inch", "31/2 inch"),
        ("10⁻³", "10-3"),
        ("1¼", "11/4"),
        ("101₂", "1012"),
        ("5 ㎡", "5 m2"),
        ("xⁿ", "xn"),
        ("👨\u200d👩\u200d👧", "👨👩👧"),
        ("มา", "ม่า"),
        ("ใกล้", "ไกล"),
        ("hòa", "hóa"),
        ("hoa", "hòa"),
        ("mía", "mià"),
        ("台", "臼"),
        ("เเ", "เ"),
        ("มากก", "มาก"),
    ],
)
def test_what_differs_in_value_stays_different(one: str, other: str) -> None:
    assert folded(one) != folded(other)


@for_each(
    ("one", "other"),
    [
        ("10²³", "10^23"),
        ("3½ inch", "3 1/2  INCH"),
        ("ＸＬ　１２", "xl 12"),
        ("10⁻³", "10^-3"),
        ("Straße", "STRASSE"),
        ("5 ㎡", "5 m²"),
        ("1⁄2", "½"),
        ("１／２", "1/2"),
        ("เเปลก", "แปลก"),
        ("น\u0e4d\u0e49า", "น้ำ"),
        ("น\u0e49\u0e4dา", "น้ำ"),
        ("ท\u0e48\u0e35", "ที่"),
        ("ก\u0e48\u0e38", "กุ่"),
        ("hòa thủy khỏe", "hoà thuỷ khoẻ"),
        ("HÒA", "hoà"),
        ("臺灣", "台灣"),
        ("孩子們", "孩子\u200b們"),
        ("foot\u00adball", "football"),
        ("\ufeffred", "red"),
        ("it’s", "it's"),
        ("it´s", "it`s"),
        ("cafe\u0301", "café"),
        ("H₂O", "H2O"),
    ],
)
def test_two_spellings_of_one_text_are_equal(one: str, other: str) -> None:
    assert folded(one) == folded(other)


def test_numbers_of_any_spelling_are_equal_only_if_they_have_the_same_value() -> None:
    written = {
        f"{base}{sign}": value
        for base in (1, 10, 102)
        for sign, value in (
            ("", str(base)),
            *((_RAISED[n], f"{base}^{n}") for n in (2, 3, 9)),
            (f"⁻{_RAISED[2]}", f"{base}^-2"),
            *((_LOWERED[n], f"{base}_{n}") for n in (2, 3)),
            ("½", f"{base} 1/2"),
            ("2", f"{base}2"),
            ("/2", f"{base}/2"),
            ("⁄2", f"{base}/2"),
        )
    }

    for (one, a), (other, b) in itertools.combinations(written.items(), 2):
        assert (a == b) == (folded(one) == folded(other)), (one, other)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
def test_folding_again_changes_nothing(text: str) -> None:
    assert unified(text) == unified(unified(text))
    assert visible(text) == visible(visible(text))


@given(
    st.text(
        alphabet=[*"กขคงจทนปมยรลวสหอ", *"ะาิีึืุูเแโใไำ่้๊๋์ํ็"],
        max_size=12,
    )
)
def test_folding_thai_again_changes_nothing(text: str) -> None:
    assert folded(text) == folded(folded(text))
