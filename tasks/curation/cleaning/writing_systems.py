"""Detect the writing systems of a text, as a cheap estimate of its language.

The estimate finds Thai text in an English response, but does not distinguish Malay from
Indonesian. Latin and Greek letters belong to every language here: brands, units, maths.
"""

import re

from tasks.gym.instructions.languages import LETTERS_OF, LOWER_CASE_WORD

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

_SCRIPTS = {"zh": "CJK", "ja": "KATAKANA", "ko": "HANGUL"}
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
    """Guess from the script: th, ja, ko or zh if a fifth of the letters belong to it, else en.

    Beside names alone, as in `Apple iPhone 15 Pro Max 手機殼`, fewer letters do: each of them says
    more than a Latin one.
    """
    if text.isascii():
        return "en"
    letters = len(_LETTER.findall(text))
    for language, pattern in _MARKS.items():
        own = len(pattern.findall(text))
        if own and own >= letters / 5:
            return language
        worth = own * LETTERS_OF.get(_SCRIPTS.get(language, ""), 1)
        if own and worth >= (letters - own + worth) / 4 and not LOWER_CASE_WORD.search(text):
            return language
    return "en"


def primary(language: str) -> str:
    """Return the primary subtag: 'zh' of 'zh-TW'."""
    return language.split("-", 1)[0].lower()
