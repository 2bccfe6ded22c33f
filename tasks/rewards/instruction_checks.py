"""The 25 checkable instructions of IFEval (2311.07911), each a predicate on the response.

Differs: sentences and capital words are counted by own rules instead of nltk, languages by
`languages` instead of langdetect; keywords are literal, not regular expressions.
"""

# ruff: noqa: RUF001 - punctuation of other scripts

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tasks.errors import DataError
from tasks.rewards.languages import is_language

Arguments = Mapping[str, Any]
Check = Callable[[str, Arguments], bool | None]
"""None if the check cannot tell."""

_ABBREVIATION = re.compile(
    r"\b(?:mr|mrs|ms|dr|prof|sr|jr|st|vs|etc|inc|ltd|co|corp|e\.g|i\.e|a\.m|p\.m|u\.s|no|fig|approx|dept|est|"
    r"jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|[a-z])\.$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]+[\"')\]*_”’]*(?=\s|$)|[。！？।]+[」』”]?")
_CONSTRAINED = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def sentences(text: str) -> list[str]:
    """Split text into sentences; abbreviations and initials end none, a blank line ends one."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        start = 0
        for match in _SENTENCE_END.finditer(paragraph):
            piece = paragraph[start : match.end()]
            dotted = match[0].startswith(".") and len(match[0].rstrip("\"')]*_”’")) == 1
            if (
                dotted
                and _ABBREVIATION.search(piece.rstrip("\"')]*_”’"))
                and match.end() < len(paragraph)
            ):
                continue
            found.append(piece)
            start = match.end()
        found.append(paragraph[start:])
    return [piece.strip() for piece in found if re.search(r"\w", piece)]


def number(arguments: Arguments, name: str) -> int:
    """Read a whole number from the arguments."""
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise DataError(f"{name} is {value!r}, needs a whole number")
    return int(value)


def text_of(arguments: Arguments, name: str) -> str:
    """Read a non-empty text from the arguments."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{name} is {value!r}, needs a text")
    return value


def texts(arguments: Arguments, name: str) -> list[str]:
    """Read a non-empty list of texts from the arguments."""
    value = arguments.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(v, str) and v for v in value):
        raise DataError(f"{name} is {value!r}, needs a list of texts")
    return value


def _related(count: int, arguments: Arguments, relation: str, bound: str) -> bool:
    limit = number(arguments, bound)
    match text_of(arguments, relation):
        case "at least":
            return count >= limit
        case "less than":
            return count < limit
        case other:
            raise DataError(f"{relation} is {other!r}, needs 'at least' or 'less than'")


def _existence(text: str, arguments: Arguments) -> bool:
    return all(word.casefold() in text.casefold() for word in texts(arguments, "keywords"))


def _forbidden(text: str, arguments: Arguments) -> bool:
    return not any(
        re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
        for word in texts(arguments, "forbidden_words")
    )


def _frequency(text: str, arguments: Arguments) -> bool:
    count = text.casefold().count(text_of(arguments, "keyword").strip().casefold())
    return _related(count, arguments, "relation", "frequency")


def _letter_frequency(text: str, arguments: Arguments) -> bool:
    count = text.lower().count(text_of(arguments, "letter").lower())
    return _related(count, arguments, "let_relation", "let_frequency")


def _language(text: str, arguments: Arguments) -> bool | None:
    return is_language(text, text_of(arguments, "language"))


def _number_sentences(text: str, arguments: Arguments) -> bool:
    return _related(len(sentences(text)), arguments, "relation", "num_sentences")


def _number_paragraphs(text: str, arguments: Arguments) -> bool:
    parts = re.split(r"\s?\*\*\*\s?", text)
    if any(not part.strip() for part in parts[1:-1]):
        return False
    return len([part for part in parts if part.strip()]) == number(arguments, "num_paragraphs")


def _number_words(text: str, arguments: Arguments) -> bool:
    return _related(len(re.findall(r"\w+", text)), arguments, "relation", "num_words")


def _nth_paragraph(text: str, arguments: Arguments) -> bool:
    paragraphs = text.split("\n\n")
    nth, total = number(arguments, "nth_paragraph"), number(arguments, "num_paragraphs")
    if sum(bool(part.strip()) for part in paragraphs) != total or not 1 <= nth <= len(paragraphs):
        return False
    words = paragraphs[nth - 1].split()
    if not words:
        return False
    first = re.split(r"[.,?!'\"]", words[0].lstrip("'\""), maxsplit=1)[0]
    return first.lower() == text_of(arguments, "first_word").lower()


def _placeholders(text: str, arguments: Arguments) -> bool:
    return len(re.findall(r"\[[^\[\]\n]*\]", text)) >= number(arguments, "num_placeholders")


def _postscript(text: str, arguments: Arguments) -> bool:
    marker = text_of(arguments, "postscript_marker").strip()
    pattern = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}.get(
        marker, re.escape(marker.lower())
    )
    return re.search(pattern, text.lower()) is not None


def _bullets(text: str, arguments: Arguments) -> bool:
    stars = re.findall(r"^[^\S\n]*\*[^*].*$", text, re.MULTILINE)
    dashes = re.findall(r"^[^\S\n]*-.*$", text, re.MULTILINE)
    return len(stars) + len(dashes) == number(arguments, "num_bullets")


def _constrained(text: str, arguments: Arguments) -> bool:
    del arguments
    return any(option in text for option in _CONSTRAINED)


def _highlights(text: str, arguments: Arguments) -> bool:
    single = re.findall(r"\*([^\n*]*)\*", text)
    double = re.findall(r"\*\*([^\n*]*)\*\*", text)
    filled = sum(bool(content.strip()) for content in (*single, *double))
    return filled >= number(arguments, "num_highlights")


def _sections(text: str, arguments: Arguments) -> bool:
    marker = re.escape(text_of(arguments, "section_spliter").strip())
    found = len(re.findall(rf"\s?{marker}\s?\d+\s?", text))
    return found >= number(arguments, "num_sections")


def _json(text: str, arguments: Arguments) -> bool:
    del arguments
    bare = re.sub(r"^```(?:json)?|```$", "", text.strip(), flags=re.IGNORECASE).strip()
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str, arguments: Arguments) -> bool:
    del arguments
    return any(
        line[start + 2 : line.rfind(">>")].strip("<> ")
        for line in text.split("\n")
        if (start := line.find("<<")) >= 0
    )


def _two_responses(text: str, arguments: Arguments) -> bool:
    del arguments
    parts = text.split("******")
    if any(not part.strip() for part in parts[1:-1]):
        return False
    filled = [part.strip() for part in parts if part.strip()]
    return len(filled) == 2 and filled[0] != filled[1]


def _repeat_prompt(text: str, arguments: Arguments) -> bool:
    return text.strip().lower().startswith(text_of(arguments, "prompt_to_repeat").strip().lower())


def _end(text: str, arguments: Arguments) -> bool:
    return (
        text.strip().strip('"').lower().endswith(text_of(arguments, "end_phrase").strip().lower())
    )


def _quotation(text: str, arguments: Arguments) -> bool:
    del arguments
    return len(text.strip()) > 1 and text.strip()[0] == text.strip()[-1] == '"'


def _capital_words(text: str, arguments: Arguments) -> bool:
    words = re.findall(r"[^\W_]+(?:[-'\u2019][^\W_]+)*", text)
    count = sum(word.isupper() for word in words)
    return _related(count, arguments, "capital_relation", "capital_frequency")


def _all_capital(text: str, arguments: Arguments) -> bool | None:
    del arguments
    return text.isupper() and is_language(text, "en")


def _all_lowercase(text: str, arguments: Arguments) -> bool | None:
    del arguments
    return text.islower() and is_language(text, "en")


def _no_comma(text: str, arguments: Arguments) -> bool:
    del arguments
    return "," not in text


CHECKS: dict[str, Check] = {
    "keywords:existence": _existence,
    "keywords:forbidden_words": _forbidden,
    "keywords:frequency": _frequency,
    "keywords:letter_frequency": _letter_frequency,
    "language:response_language": _language,
    "length_constraints:number_sentences": _number_sentences,
    "length_constraints:number_paragraphs": _number_paragraphs,
    "length_constraints:number_words": _number_words,
    "length_constraints:nth_paragraph_first_word": _nth_paragraph,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:constrained_response": _constrained,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:json_format": _json,
    "detectable_format:title": _title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeat_prompt,
    "startend:end_checker": _end,
    "startend:quotation": _quotation,
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": _all_capital,
    "change_case:english_lowercase": _all_lowercase,
    "punctuation:no_comma": _no_comma,
}
