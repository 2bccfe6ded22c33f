"""Words that exports write where there is no value."""

import pytest

from tasks.curation.readers.missing import is_doubtful, is_missing, is_null

NULLS = [
    "NULL",
    "N/A",
    "n / a",
    "#N/A",
    "<NA>",
    "NaN",
    "(null)",
    "[NULL]",
    r"\N",
    "#REF!",
    "#CALC!",
    " ",
    "",
]
NULLS += ["\uff2e\uff35\uff2c\uff2c"]  # of a wide keyboard


@pytest.mark.parametrize("text", NULLS)
def test_what_an_export_writes_for_no_value_is_none_of_any_kind(text: str):
    assert is_null(text)
    assert is_missing(text)


@pytest.mark.parametrize(
    "text", ["None", "na", "N.A.", "undefined", "(blank)", "-", "—", "?", "'NULL'", "--None--"]
)
def test_what_is_no_label_may_be_a_text(text: str):
    assert is_missing(text)
    assert not is_null(text)


@pytest.mark.parametrize("text", ["Empty", "Nan bread", "null pointer", "0", "+", "😀", "無料"])
def test_what_only_resembles_one_of_them_is_a_label(text: str):
    assert not is_missing(text)
    assert not is_null(text)


@pytest.mark.parametrize(
    "text",
    [
        "Unknown",
        "not  available",
        "ไม่ระบุ",
        "未知",
        "Tidak diketahui",
        "-- Select --",
        "N.D.",
        "Без категории",
    ],
)
def test_what_may_stand_for_no_label_is_doubtful_and_no_more(text: str):
    assert is_doubtful(text)
    assert not is_missing(text)
