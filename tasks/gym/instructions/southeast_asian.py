"""Instructions for the languages of eight markets: en, zh-TW, id, ms, pt, th, vi and fil.

`language` is one of these tags and decides how to count. Keywords in Thai and Chinese are found
anywhere, others as whole words (keyword rule of Compass-Gym). A count that needs a dictionary, such
as the number of Thai words, is a range; if the verdict depends on the position in the range, the
check cannot decide. Letter case, full-width forms and the encoding of accents do not affect
keywords and phrases.
"""

# ruff: noqa: RUF001 - the marks of other scripts are the point
import re
import unicodedata
from collections.abc import Callable

from tasks.algorithms.language_tags import primary
from tasks.gym.instructions.arguments import (
    Arguments,
    Check,
    Kind,
    between,
    check_count,
    one_of,
    phrase,
    phrases,
    relation,
    whole,
)
from tasks.gym.instructions.checks import all_capital, all_lowercase, ends
from tasks.gym.instructions.languages import is_language, simplified, traditional
from tasks.gym.instructions.measures import (
    HAN,
    THAI,
    characters,
    folded,
    occurrences,
    paragraphs,
    script_characters,
    sentence_bounds,
    word_bounds,
)

LANGUAGES = ("en", "zh-TW", "id", "ms", "pt", "th", "vi", "fil")
_CASED = ("en", "id", "ms", "pt", "vi", "fil")
_THAI_DIGITS = "๐๑๒๓๔๕๖๗๘๙"
_SCRIPTS = {
    "thai": re.compile(rf"[{THAI}\u0e50-\u0e5b]"),
    "han": re.compile(f"[{HAN}]"),
    "latin": re.compile(r"[A-Za-zªº\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]"),
}
_BULLET = re.compile(r"^[^\S\n]*[-*•‧・▪●–][^\S\n]+\S", re.MULTILINE)
_NUMBERED = re.compile(
    rf"^[^\S\n]*(?:[0-9０-９{_THAI_DIGITS}]{{1,3}}|[一二三四五六七八九十]{{1,3}})(?:[.)）][^\S\n]*|[、．])\S",
    re.MULTILINE,
)
_QUOTES = {'"': '"', "“": "”", "「": "」", "『": "』", "«": "»"}
_COMMAS = frozenset(",，、﹐､،")
_HALF_WIDTH = re.compile(rf"(?<=[{HAN}])[,.!?;:]|[,!?;:](?=[{HAN}])")


def _bounded(bounds: Callable[[str, str], tuple[int, int]], bound: str) -> Check:
    def check(text: str, arguments: Arguments) -> bool | None:
        low, high = bounds(text, primary(arguments["language"]))
        return between(low, high, arguments["relation"], arguments[bound])

    return check


def _existence(text: str, arguments: Arguments) -> bool:
    return all(occurrences(text, word) for word in arguments["keywords"])


def _forbidden(text: str, arguments: Arguments) -> bool:
    return not any(occurrences(text, word) for word in arguments["forbidden_words"])


def _frequency(text: str, arguments: Arguments) -> bool:
    return arguments["relation"](occurrences(text, arguments["keyword"]), arguments["frequency"])


def _script_only(text: str, arguments: Arguments) -> bool:
    letters = [char for char in unicodedata.normalize("NFC", text) if char.isalpha()]
    return bool(letters) and all(_SCRIPTS[arguments["script"]].match(char) for char in letters)


def _traditional(text: str, arguments: Arguments) -> bool | None:
    del arguments
    if simplified(text):
        return False
    return True if traditional(text) else None


def _starts(text: str, arguments: Arguments) -> bool:
    start, text = folded(arguments["start_phrase"].strip()), folded(text.strip())
    return text.startswith(start) or text.lstrip("*_").startswith(start)  # **these words**


def _quoted(text: str, arguments: Arguments) -> bool:
    del arguments
    text = text.strip()
    return len(text) > 2 and _QUOTES.get(text[0]) == text[-1]


def _title(text: str, arguments: Arguments) -> bool:
    first = text.strip().split("\n", 1)[0].strip()
    opening, closing = arguments["opening"].strip(), arguments["closing"].strip()
    inside = first.removeprefix(opening).removesuffix(closing)
    return len(first) - len(inside) == len(opening + closing) and bool(re.search(r"\w", inside))


def _thai_digits(text: str, arguments: Arguments) -> bool:
    del arguments
    digits = re.findall(r"\d", text)
    return bool(digits) and all(digit in _THAI_DIGITS for digit in digits)


def _full_width(text: str, arguments: Arguments) -> bool:
    del arguments
    return bool(re.search(f"[{HAN}]", text)) and _HALF_WIDTH.search(text) is None


def _cased(check: Callable[[str], Check]) -> Check:
    return lambda text, arguments: check(arguments["language"])(text, arguments)


_TAG = one_of(*LANGUAGES)
_HOW_MANY = {"relation": relation, "num_characters": whole}

_KINDS: dict[str, Kind] = {
    "count:words": Kind(
        _bounded(word_bounds, "num_words"),
        {"language": _TAG, "relation": relation, "num_words": whole},
        "how many words; zh-TW: characters; vi: syllables; th: a range",
        "count_undecided",
    ),
    "count:sentences": Kind(
        _bounded(sentence_bounds, "num_sentences"),
        {"language": _TAG, "relation": relation, "num_sentences": whole},
        "how many sentences; zh-TW: a line end ends one; th: a range",
        "count_undecided",
    ),
    "count:paragraphs": Kind(
        check_count(lambda text: len(paragraphs(text)), "num_paragraphs"),
        {"relation": relation, "num_paragraphs": whole},
        "how many paragraphs, blank lines between them",
    ),
    "count:characters": Kind(
        check_count(characters, "num_characters"),
        _HOW_MANY,
        "how many characters; no blanks, vowel and tone marks with their letter",
    ),
    "count:thai_characters": Kind(
        check_count(lambda text: script_characters(text, THAI), "num_characters"),
        _HOW_MANY,
        "how many Thai letters, vowel and tone marks with their letter",
    ),
    "count:chinese_characters": Kind(
        check_count(lambda text: script_characters(text, HAN), "num_characters"),
        _HOW_MANY,
        "how many Chinese characters",
    ),
    "keywords:existence": Kind(_existence, {"keywords": phrases}, "every keyword"),
    "keywords:forbidden_words": Kind(
        _forbidden, {"forbidden_words": phrases}, "none of these words"
    ),
    "keywords:frequency": Kind(
        _frequency,
        {"keyword": phrase, "relation": relation, "frequency": whole},
        "how often a keyword",
    ),
    "language:response_language": Kind(
        lambda text, a: is_language(text, a["language"]), {"language": _TAG}, "in this language"
    ),
    "language:script_only": Kind(
        _script_only, {"script": one_of(*_SCRIPTS)}, "letters of one script: thai, han or latin"
    ),
    "language:traditional_only": Kind(_traditional, {}, "Chinese without simplified characters"),
    "case:all_capital": Kind(
        _cased(all_capital), {"language": one_of(*_CASED)}, "in this language, no small letter"
    ),
    "case:all_lowercase": Kind(
        _cased(all_lowercase), {"language": one_of(*_CASED)}, "in this language, no capital letter"
    ),
    "format:bullets": Kind(
        check_count(lambda text: len(_BULLET.findall(text)), "num_bullets"),
        {"relation": relation, "num_bullets": whole},
        "how many lines that start with a bullet",
    ),
    "format:numbered_list": Kind(
        check_count(lambda text: len(_NUMBERED.findall(text)), "num_items"),
        {"relation": relation, "num_items": whole},
        "how many lines that start with a number: 1. 1) ๑. １． 一、",
    ),
    "format:title": Kind(
        _title,
        {"opening": phrase, "closing": phrase},
        "a title between these marks, alone in line 1",
    ),
    "format:quotation": Kind(_quoted, {}, 'all in quotation marks: "" “” 「」 『』 «»'),
    "format:start_phrase": Kind(_starts, {"start_phrase": phrase}, "these words first"),
    "format:end_phrase": Kind(ends, {"end_phrase": phrase}, "these words last"),
    "format:no_comma": Kind(lambda text, _: _COMMAS.isdisjoint(text), {}, "no comma of any script"),
    "format:thai_digits": Kind(_thai_digits, {}, "digits, and Thai ones only"),
    "format:full_width_punctuation": Kind(
        _full_width, {}, "Chinese characters, and no half-width mark next to one"
    ),
}

SEA: dict[str, Kind] = {f"sea:{name}": kind for name, kind in _KINDS.items()}
