"""Which language is this text? By script where the script decides, else by frequent words.

Made for checking an instruction ("answer in Thai"), not for general identification: it knows a few
dozen languages and says None where it cannot tell.
"""

import re
import unicodedata
from collections import Counter

from tasks.rewards.language_words import WORDS

MIN_SHARE = 0.5
"""Of the letters, for a script to be the text's script."""

MIN_LEAD = 2
"""Frequent words another language must be ahead by to say no."""

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
_CLOSE = ({"id", "ms"},)
"""Languages that short texts do not tell apart."""

KNOWN = frozenset(
    {
        *_SCRIPT_LANGUAGE.values(),
        *(tag for group in _PROFILES.values() for tag in group),
    }
)


def is_language(text: str, language: str) -> bool | None:
    """Say whether a text is in a language, by its primary subtag; None if that cannot be told.

    A text without letters, or without one script for most of them, is in no language.
    """
    primary = language.replace("_", "-").casefold().split("-")[0]
    if primary not in KNOWN:
        return None
    script = dominant_script(text)
    if script not in _PROFILES:
        return primary == _SCRIPT_LANGUAGE.get(script or "")
    profiles = _PROFILES[script]
    if primary not in profiles:
        return False
    hits = _hits(text, script)
    best = max(hits.values())
    if best == 0:
        return None
    near = {tag for tag, count in hits.items() if count == best}
    near |= {tag for group in _CLOSE if group & near for tag in group if hits[tag] * 5 >= best * 4}
    if primary in near:
        return True
    return None if best - hits[primary] < MIN_LEAD else False


def dominant_script(text: str) -> str | None:
    """Return the script most letters are written in, Unicode names; None without a clear one."""
    letters = Counter(
        unicodedata.name(char, "OTHER").split(" ")[0].split("-")[0]
        for char in text
        if char.isalpha()
    )
    if not letters:
        return None
    japanese = letters["HIRAGANA"] + letters["KATAKANA"]
    if japanese * 10 >= letters["CJK"] + japanese > 0 and japanese:
        letters["HIRAGANA"] = japanese + letters.pop("CJK", 0)
        letters.pop("KATAKANA", None)
    script, count = letters.most_common(1)[0]
    return script if count >= MIN_SHARE * letters.total() else None


def _hits(text: str, script: str) -> dict[str, int]:
    folded = unicodedata.normalize("NFC", text).casefold().replace("\u2019", "'")
    words = re.findall(r"[^\W\d_][\w\u0900-\u097f\u200c']*", folded)
    return {
        language: sum(word in profile for word in words)
        for language, profile in _PROFILES[script].items()
    }
