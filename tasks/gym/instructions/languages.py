"""Identify the language of a text by its script, else by frequent words and letters.

Made for checking an instruction ("answer in Thai"), not for general identification: it knows a few
dozen languages and returns None if undecided. Indonesian and Malay are distinguished by words that
differ between the two standards, Traditional and Simplified Chinese by characters that only one of
two national encodings (Big5, GB 2312) has.
"""

import re
import unicodedata
from collections import Counter

from tasks.gym.instructions.language_words import APART, WORDS

MIN_SHARE = 0.5
"""Share of the letters that makes a script the text's script."""

MIN_LEAD = 2
"""Lead in frequent words with which another language excludes this one."""

MIN_COVERAGE = 0.1
"""Share of the words that must be frequent words of a language to confirm it."""

LONG = 30
"""Words of a text that is always decided: among 2,400 pieces of public text of this length in five
languages, the frequent words of another language led in one, and none had fewer than 10 %."""

CLEAR = 3
"""Ratio of words or characters that decides between two close standards."""

_SCRIPT_LANGUAGE = {
    "THAI": "th",
    "HANGUL": "ko",
    "KANNADA": "kn",
    "GURMUKHI": "pa",
    "GUJARATI": "gu",
    "TELUGU": "te",
    "TAMIL": "ta",
    "BENGALI": "bn",
    "MALAYALAM": "ml",
    "GREEK": "el",
    "HEBREW": "he",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
}
_PROFILES = {
    script: {language: frozenset(words.split()) for language, words in profiles.items()}
    for script, profiles in WORDS.items()
}
_LETTERS = {
    "vi": re.compile(r"[\u0103\u0111\u01a1\u01b0\u1ea0-\u1ef9]"),
    "es": re.compile(r"[\u00f1\u00bf\u00a1]"),
    "de": re.compile(r"\u00df"),
    "tr": re.compile(r"[\u011f\u0131\u015f]"),
    "pl": re.compile(r"[\u0142\u0105\u0119\u015b\u017a\u017c\u0107\u0144]"),
    "fr": re.compile(r"\u0153|^[cdjlmnst]'(?:[aeiou\u00e9\u00ea\u00e8\u00e0]|h[aeo])"),
    "pt": re.compile(r"\u00e7\u00e3o$|\u00e7\u00f5es$|\u00f5es$|\u00e3es$|\u00e3o$"),
}
"""Letters and endings rarely found in other languages, by language in Latin script."""
_STANDARDS = {"id": "ms", "ms": "id"}
_APART = {language: frozenset(words.split()) for language, words in APART.items()}
_TRADITIONAL_TAGS = frozenset({"tw", "hk", "mo", "hant"})
_SIMPLIFIED_TAGS = frozenset({"cn", "sg", "hans"})

KNOWN = frozenset(
    {
        *_SCRIPT_LANGUAGE.values(),
        *(tag for group in _PROFILES.values() for tag in group),
    }
)


def _encoded(codec: str) -> frozenset[str]:
    found = (chr(point) for point in range(0x4E00, 0xA000))
    return frozenset(char for char in found if char.encode(codec, "ignore"))


_BIG5, _GB2312 = _encoded("big5"), _encoded("gb2312")


def is_known(language: str) -> bool:
    """True if texts in a language can be recognised, by its tag."""
    return _subtags(language)[0] in KNOWN


def is_language(text: str, language: str) -> bool | None:
    """Say whether a text is in a language; None if undecided.

    Of the tag the language counts, and for Chinese the region or script as well. A text without
    letters, or without one script for most of them, is in no language.
    """
    primary, *subtags = _subtags(language)
    if primary not in KNOWN:
        return None
    script = dominant_script(text)
    if script not in _PROFILES:
        if primary != _SCRIPT_LANGUAGE.get(script or ""):
            return False
        return _chinese(text, frozenset(subtags)) if primary == "zh" else True
    return _by_words(text, script, primary) if primary in _PROFILES[script] else False


def _subtags(language: str) -> list[str]:
    return language.replace("_", "-").casefold().split("-")


def dominant_script(text: str) -> str | None:
    """Return the Unicode name of the script of most letters; None if there is no clear one."""
    letters: Counter[str] = Counter()
    for char, count in Counter(text).items():
        if char.isalpha():
            letters[unicodedata.name(char, "OTHER").split(" ")[0].split("-")[0]] += count
    if not letters:
        return None
    japanese = letters["HIRAGANA"] + letters["KATAKANA"]
    if japanese * 10 >= letters["CJK"] + japanese > 0 and japanese:
        letters["HIRAGANA"] = japanese + letters.pop("CJK", 0)
        letters.pop("KATAKANA", None)
    script, count = letters.most_common(1)[0]
    return script if count >= MIN_SHARE * letters.total() else None


def traditional(text: str) -> int:
    """Count the characters used only in traditional Chinese."""
    return sum(char in _BIG5 and char not in _GB2312 for char in text)


def simplified(text: str) -> int:
    """Count the characters used only in simplified Chinese."""
    return sum(char in _GB2312 and char not in _BIG5 for char in text)


def _by_words(text: str, script: str, language: str) -> bool | None:
    words = _words(text)
    hits = _hits(words, script)
    close = _STANDARDS.get(language, language)
    mine = max(hits[language], hits[close])
    other = max(count for tag, count in hits.items() if tag not in (language, close))
    undecided = False if len(words) >= LONG else None
    if mine <= other:
        return False if other - mine >= MIN_LEAD else undecided
    if mine < MIN_COVERAGE * len(words):
        return undecided
    return _standard(words, language) if language in _STANDARDS else True


def _chinese(text: str, subtags: frozenset[str]) -> bool | None:
    if subtags & _TRADITIONAL_TAGS:
        return _clear(traditional(text), simplified(text))
    if subtags & _SIMPLIFIED_TAGS:
        return _clear(simplified(text), traditional(text))
    return True


def _standard(words: list[str], language: str) -> bool | None:
    mine, its = _APART[language], _APART[_STANDARDS[language]]
    return _clear(sum(word in mine for word in words), sum(word in its for word in words))


def _clear(mine: int, its: int) -> bool | None:
    if mine + its == 0:
        return None
    if mine >= CLEAR * its:
        return True
    return False if its >= max(CLEAR * mine, MIN_LEAD) else None


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFC", text).casefold().replace("\u2019", "'")
    return re.findall(r"[^\W\d_][\w\u0900-\u097f\u200c']*|[\u00bf\u00a1]", folded)


def _hits(words: list[str], script: str) -> dict[str, int]:
    hits = {
        language: sum(word in profile for word in words)
        for language, profile in _PROFILES[script].items()
    }
    for language, letters in _LETTERS.items() if script == "LATIN" else ():
        profile = _PROFILES[script][language]
        hits[language] += sum(word not in profile and bool(letters.search(word)) for word in words)
    return hits
