"""Detect the writing systems of a text, as a cheap estimate of its language.

The estimate finds Thai text in an English response, but does not distinguish Malay from
Indonesian. Latin and Greek letters belong to every language here: brands, units, maths.
"""

import re

_EVERYWHERE = r"A-Za-zªº\u00c0-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a\u0370-\u03ff"
_HAN = r"\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_KANA = r"\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_OWN = {
    "zh": _HAN,
    "ja": _HAN + _KANA,
    "th": r"\u0e00-\u0e7f",
    "ko": r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af" + _HAN,
    "en": "",
    "id": "",
    "ms": "",
    "pt": "",
    "vi": "",
    "es": "",
    "fr": "",
    "de": "",
}
"""Letters of a language in addition to those used everywhere. Other languages are not checked."""
SPACELESS = ("zh", "ja", "th")
"""Languages written without spaces between words."""

_LETTER = re.compile(r"[^\W\d_]")
_ASCII = re.compile(r"[\x00-\x7f]+")
_FOREIGN = {
    language: re.compile(rf"(?![{_EVERYWHERE}{own}])[^\W\d_]") for language, own in _OWN.items()
}
_MARKS = {
    "th": re.compile(f"[{_OWN['th']}]"),
    "ja": re.compile(f"[{_KANA}]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(f"[{_HAN}]"),
}


def foreign_share(text: str, language: str) -> float:
    """Share of a text's letters that do not belong to the language; 0 without letters."""
    pattern = _FOREIGN.get(primary(language))
    if pattern is None or text.isascii():
        return 0.0
    foreign = len(pattern.findall(_ASCII.sub("", text)))  # which belongs to every language
    return foreign / len(_LETTER.findall(text)) if foreign else 0.0


def language_of(text: str) -> str:
    """Guess from the script: th, ja, ko or zh if a fifth of the letters belong to it, else en."""
    if text.isascii():
        return "en"
    letters = len(_LETTER.findall(text))
    for language, pattern in _MARKS.items():
        if letters and len(pattern.findall(text)) >= letters / 5:
            return language
    return "en"


def primary(language: str) -> str:
    """Return the primary subtag: 'zh' of 'zh-TW'."""
    return language.split("-", 1)[0].lower()
