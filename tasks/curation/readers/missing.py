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
        *("#error!", "#calc!", "#spill!"),
    )
)
"""No text of a person is one of these (pandas, SQL clients, errors of spreadsheets)."""
_LABELS = frozenset(("none", "na", "nil", "nul", "n.a", "n\\a", "undefined"))
"""Besides, no label is one (JavaScript, Python, forms)."""
_BRACKETED = frozenset(("blank", "empty", "missing", "unset", "novalue", "notset"))
"""No label in brackets, as pivot tables write it; without them one may be called so."""
_BRACKETS = re.compile(r"[(\[<{](.+)[)\]>}]")
# "'NULL'", "--None--": no label, and a text.
_AROUND = re.compile(r"([\"'`])(.+)\1|-+([^-]+)-+")
_DOUBTFUL = frozenset(
    (
        *("unknown", "unspecified", "not specified", "not available", "not provided", "no data"),
        *("missing", "empty", "blank", "tbd", "tba", "unlabeled", "unlabelled", "no label"),
        *("not applicable", "not set", "unset", "unassigned", "unclassified", "no category"),
        *("uncategorized", "uncategorised", "no value", "select", "please select", "n/d", "n.d"),
        *("tidak diketahui", "tidak ada", "tidak tersedia", "tiada", "belum diisi"),
        *("tanpa kategori", "tanpa label", "pilih kategori"),
        *("desconhecido", "sem informação", "não informado", "não especificado", "desconocido"),
        *("não se aplica", "sem categoria", "sem dados", "no aplica", "sin categoría", "s/d"),
        *("sin datos", "sin información", "no especificado", "sin asignar"),
        *("không rõ", "không có", "chưa rõ", "chưa phân loại", "không xác định"),
        *("hindi alam", "wala", "walang kategorya"),
        *("ไม่ระบุ", "ไม่ทราบ", "ไม่มี", "ไม่มีข้อมูล", "ไม่มีหมวดหมู่"),
        *("未知", "未指定", "无", "無", "空", "不明", "不详", "不詳", "暂无", "暫無"),
        *("未分类", "未分類", "なし", "該当なし", "없음", "해당 없음", "해당없음", "미분류"),
        *("k.a", "keine angabe", "unbekannt", "non renseigné", "inconnu", "n.v.t", "onbekend"),
        *("н/д", "нет данных", "не указано", "неизвестно", "без категории"),
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
    if around := _AROUND.fullmatch(word):
        return is_missing(around[2] or around[3])
    return (
        is_null(label)
        or word.rstrip(".") in _LABELS | _NULLS
        or (bracketed is not None and bracketed[1] in _LABELS | _BRACKETED)
        or all(unicodedata.category(char)[0] == "P" for char in word)
    )


def is_doubtful(label: str) -> bool:
    """Return whether a label may stand for none, and may be one: `Unknown`."""
    text = unicodedata.normalize("NFKC", label).casefold()
    return " ".join(text.strip(" -\u2013\u2014.\u2026()[]<>*").split()) in _DOUBTFUL


def _word(text: str) -> str:
    """Fold width, case and blanks: `N/A` of East Asian keyboards is wide."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


_NA = frozenset(("na",))
"""`<NA>` of pandas."""
