"""Normalise texts, split them into words and detect their writing systems."""

import re
import unicodedata
from collections.abc import Callable
from typing import TypeVar

# Normalise texts and split them into words, for duplicate and contamination checks.
#
# A run of digits is one word, so that 12 and 13 are as different as cat and dog. Scripts
# written without spaces (Han, Kana, Thai) are split into characters.

ValueT = TypeVar("ValueT")

_LONGEST = 32
"""Characters of a part that is remembered: longer ones, as of scripts without spaces, are rare."""
_MOST = 65_536
"""Parts that are remembered: about 12 MB."""

_WORD = re.compile(
    r"\d+(?:[.,]\d+)*"  # a number, with its separators
    r"|[\u0e00-\u0e7f\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # one spaceless character
    r"|[^\W\d\u0e00-\u0e7f\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"  # a word
    r"|[^\w\s]"  # one sign: in '3 - 4' it is content
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def normalise(text: str) -> str:
    """Fold width, case and whitespace: NFKC, casefold, single spaces."""
    return " ".join(parts(text))


def parts(text: str) -> list[str]:
    """Fold width and case, and split at whitespace; no word and no number goes across parts."""
    if text.isascii():  # in which NFKC changes nothing
        return text.lower().split()
    return unicodedata.normalize("NFKC", text).casefold().split()


def words(text: str) -> list[str]:
    """Split a normalised text into numbers, words, signs and characters of spaceless scripts."""
    return _WORD.findall(text)


def numbers(text: str) -> tuple[str, ...]:
    """Return the numbers of a text in their order."""
    return tuple(_NUMBER.findall(text))


def is_sign(word: str) -> bool:
    """True for a punctuation mark or symbol."""
    return unicodedata.category(word[0])[0] in "PS"


class ByPart(dict[str, ValueT]):
    """What is computed of each part when it is first asked for: few parts make up most texts."""

    def __init__(self, compute: Callable[[str], ValueT]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, part: str) -> ValueT:
        value = self._compute(part)
        if len(part) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[part] = value
        return value


# Detect the writing systems of a text, as a cheap estimate of its language.
#
# The estimate finds Thai text in an English response, but does not distinguish Malay from
# Indonesian. Latin and Greek letters belong to every language here: brands, units, maths.

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
