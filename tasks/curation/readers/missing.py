"""What exports write where there is no value: words of databases, of pandas and of spreadsheets.

A label that is one of them is none. A text by itself may be one of most of them: `none` answers how
many, and `Na` is sodium; so of a response, a gold or a prompt fewer are taken for no value.
"""

import re
import unicodedata

_NULLS = frozenset(
    (
        *("null", "nan", "n/a", "#n/a", "#na", "nat", "-nan", "\\n"),
        *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
        *("#ref!", "#value!", "#div/0!", "#name?", "#num!", "#null!"),
    )
)
"""No text of a person is one of these (pandas, SQL clients, errors of spreadsheets)."""
_LABELS = frozenset(("none", "na", "nil", "nul", "n.a", "n\\a", "undefined"))
"""Besides, no label is one (JavaScript, Python, forms)."""
_BRACKETED = frozenset(("blank", "empty", "missing", "unset", "novalue", "notset"))
"""No label in brackets, as pivot tables write it; without them one may be called so."""
_BRACKETS = re.compile(r"[(\[<{](.+)[)\]>}]")
_DOUBTFUL = frozenset(
    (
        *("unknown", "unspecified", "not specified", "not available", "not provided", "no data"),
        *("missing", "empty", "blank", "tbd", "tba", "unlabeled", "unlabelled", "no label"),
        *("tidak diketahui", "tidak ada", "tidak tersedia", "tiada", "belum diisi"),
        *("desconhecido", "sem informação", "não informado", "não especificado", "desconocido"),
        *("sin datos", "sin información", "no especificado", "không rõ", "không có", "chưa rõ"),
        *("hindi alam", "wala", "ไม่ระบุ", "ไม่ทราบ", "ไม่มี", "ไม่มีข้อมูล"),
        *("未知", "未指定", "无", "無", "空", "不明", "不详", "不詳", "暂无", "暫無"),
    )
)


def is_null(text: str) -> bool:
    """Return whether an export wrote a text where there was none; a blank text is one."""
    word = _word(text)
    bracketed = _BRACKETS.fullmatch(word)
    return not word or word in _NULLS or (bracketed is not None and bracketed[1] in _NULLS | _NA)


def is_missing(label: str) -> bool:
    """Return whether a label is none: a word for no value, or no letter, digit or sign at all."""
    word = _word(label)
    bracketed = _BRACKETS.fullmatch(word)
    return (
        is_null(label)
        or word.rstrip(".") in _LABELS | _NULLS
        or (bracketed is not None and bracketed[1] in _LABELS | _BRACKETED)
        or all(unicodedata.category(char)[0] == "P" for char in word)
    )


def is_doubtful(label: str) -> bool:
    """Return whether a label may stand for none, and may be one: `Unknown`."""
    return " ".join(label.casefold().split()) in _DOUBTFUL


def _word(text: str) -> str:
    return "".join(text.casefold().split())


_NA = frozenset(("na",))
"""`<NA>` of pandas."""
