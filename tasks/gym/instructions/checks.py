"""The 25 checkable instructions of IFEval (2311.07911), each a predicate on the response.

Differs: sentences and capital words are counted by rules of our own instead of nltk, languages by
`languages` instead of langdetect; keywords are literal, not regular expressions.
Differs: read as the instruction says it, because the policy is paid for it: any number of blank
lines divides paragraphs, marks of emphasis are no part of a word, and rules of Markdown, negative
numbers and products are neither bullets nor highlights; NaN is no JSON; who gives two of three
answers gives none, and a title that is not closed is none.
"""

import json
import re
import unicodedata

from data_schemas.json_text import refuse_constant
from tasks.algorithms.folding import unified
from tasks.gym.instructions.arguments import (
    Arguments,
    Check,
    Kind,
    check_count,
    letter,
    phrase,
    phrases,
    relation,
    whole,
)
from tasks.gym.instructions.languages import is_language
from tasks.gym.instructions.measures import ends_with, sentences

# Lines without text between paragraphs, also with spaces or as Windows ends them.
_BLANK_LINES = re.compile(r"\r?\n(?:[^\S\n]*\n)+")
# "---", "* * *": a rule of Markdown.
_RULE = r"[^\S\n]*(?:(?:-[^\S\n]*){3,}|(?:\*[^\S\n]*){3,})$"
# "*word*", "**two words**"; not "2 * 3 * 4" nor "2*3*4".
# *so*, not 2*3*4, nor \*so\*, which are signs as they stand.
_SINGLE = re.compile(r"(?<![*\\])(?<!\d)\*(?![\s*])[^\n*]+(?<![\s\\])\*(?!\*)")
_DOUBLE = re.compile(r"(?<!\\)\*\*(?![\s*])[^\n*]+(?<![\s\\])\*\*")
# "- " and "* " in front of a paragraph.
_BULLET = re.compile(r"^\s*[-*+]\s+")
_QUOTES = "'\"\u2018\u2019\u201c\u201d\u00ab\u00bb"
# Thai, Lao, Burmese, Khmer, Japanese, Chinese: words have no blanks between them.
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
CONSTRAINED = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_CAPITAL_WORD = re.compile(r"(?<!\w)(?:[^\W\d_]\.)+[^\W\d_](?!\w)|[^\W_]+(?:[-'\u2019][^\W_]+)*")


def existence(text: str, arguments: Arguments) -> bool:
    """Say whether every keyword is in the text, inside a word or not."""
    folded = _folded(text)
    return all(_folded(word) in folded for word in arguments["keywords"])


def no_forbidden_words(text: str, arguments: Arguments) -> bool:
    """Say whether no forbidden word is in the text: as a whole word, if the script has blanks."""
    folded = _folded(text)
    return not any(_is_word(_folded(word), folded) for word in arguments["forbidden_words"])


def _is_word(word: str, text: str) -> bool:
    before = "" if _SPACELESS.match(word[:1]) else r"(?<![^\W_])"
    after = "" if _SPACELESS.match(word[-1:]) else r"(?![^\W_])"
    return re.search(f"{before}{re.escape(word)}{after}", text) is not None


def _folded(text: str) -> str:
    """Fold case, blanks and spellings of a word: a typed ê may be one sign or two."""
    return " ".join(unicodedata.normalize("NFC", unified(text)).casefold().split())


def frequency(text: str, arguments: Arguments) -> bool:
    """Compare how often the keyword is in the text, inside words too."""
    count = _folded(text).count(_folded(arguments["keyword"].strip()))
    return arguments["relation"](count, arguments["frequency"])


def letter_frequency(text: str, arguments: Arguments) -> bool:
    """Compare how often the letter is in the text, in either case."""
    count = text.lower().count(arguments["letter"].lower())
    return arguments["let_relation"](count, arguments["let_frequency"])


def response_language(text: str, arguments: Arguments) -> bool | None:
    """Say whether the text is in the language."""
    return is_language(text, arguments["language"])


def divided_paragraphs(text: str, arguments: Arguments) -> bool:
    """Say whether *** divides the text into that many paragraphs."""
    parts = re.split(r"\s?\*\*\*\s?", text)
    if any(not part.strip() for part in parts[1:-1]):
        return False
    return len([part for part in parts if part.strip()]) == arguments["num_paragraphs"]


def nth_paragraph(text: str, arguments: Arguments) -> str | None:
    """Return the requested paragraph; None if it is blank or the number of paragraphs is wrong."""
    parts = [part.strip() for part in _BLANK_LINES.split(text) if part.strip()]
    nth = arguments["nth_paragraph"]
    if len(parts) != arguments["num_paragraphs"] or not 1 <= nth <= len(parts):
        return None
    return parts[nth - 1]


def _first_word(text: str, arguments: Arguments) -> bool:
    paragraph = nth_paragraph(text, arguments)
    if paragraph is None:
        return False
    start = _folded(_BULLET.sub("", paragraph).lstrip(f"*_#>(`{_QUOTES} "))
    first = re.escape(_folded(arguments["first_word"].strip()))
    return re.match(rf"{first}(?![^\W_]|-)", start) is not None


def placeholders(text: str) -> int:
    """Count [placeholders]; a [link](of Markdown), [] and the [ ] and [x] of a task are none."""
    return len(re.findall(r"\[(?!x\])[^\[\]\n]*\w[^\[\]\n]*\](?!\()", text))


def _postscript(text: str, arguments: Arguments) -> bool:
    marker: str = arguments["postscript_marker"].strip()
    patterns = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
    return re.search(patterns.get(marker, re.escape(marker.lower())), text.lower()) is not None


def starred_bullets(text: str) -> int:
    """Count lines that start with one asterisk, which does not open an *emphasis*."""
    starred = rf"^(?!{_RULE})[^\S\n]*\*(?!\S[^\n*]*\*)[^*\n].*$"
    return len(re.findall(starred, text, re.MULTILINE))


def bullets(text: str, arguments: Arguments) -> bool:
    """Say whether the text has that many lines that start with * or -."""
    dashed = re.findall(rf"^(?!{_RULE})[^\S\n]*-(?![-\d]).*$", text, re.MULTILINE)
    return starred_bullets(text) + len(dashed) == arguments["num_bullets"]


def _constrained(text: str, arguments: Arguments) -> bool:
    del arguments
    return sum(option in text for option in CONSTRAINED) == 1


def highlights(text: str) -> int:
    """Count *highlights* and **highlights** that are not blank."""
    return len(_SINGLE.findall(text)) + len(_DOUBLE.findall(text))


def sections(text: str, marker: str) -> int:
    """Count section marks: the marker followed by a number."""
    return len(re.findall(rf"\s?{re.escape(marker.strip())}\s?\d+\s?", text))


def is_json(text: str, arguments: Arguments) -> bool:
    """Say whether the text, or its only fenced block, is JSON."""
    del arguments
    bare = re.sub(r"^```(?:json)?|```$", "", text.strip(), flags=re.IGNORECASE).strip()
    try:
        json.loads(bare, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def titled(text: str, arguments: Arguments) -> bool:
    """Say whether a line has a <<title>>."""
    del arguments
    return any(
        line[start + 2 : end].strip("<> ")
        for line in text.split("\n")
        if (start := line.find("<<")) >= 0 and (end := line.rfind(">>")) > start
    )


def two_responses(text: str, arguments: Arguments) -> bool:
    """Say whether ****** separates two different responses."""
    del arguments
    parts = text.split("******")
    if any(not part.strip() for part in parts[1:-1]):
        return False
    filled = [part.strip() for part in parts if part.strip()]
    return len(filled) == 2 and filled[0] != filled[1]


def repeats_prompt(text: str, arguments: Arguments) -> bool:
    """Say whether the text starts with the prompt."""
    return text.strip().lower().startswith(arguments["prompt_to_repeat"].strip().lower())


def ends(text: str, arguments: Arguments) -> bool:
    """Say whether the text, or the text in its quotation marks, ends with the phrase."""
    return ends_with(text, arguments["end_phrase"])


def quoted(text: str, arguments: Arguments) -> bool:
    """Say whether the text is in double quotation marks, as typed or as printed."""
    del arguments
    text = text.strip()
    return len(text) > 1 and text[0] + text[-1] in ('""', "\u201c\u201d", "\u201e\u201c")


def capital_words(text: str) -> int:
    """Count words without a small letter; hyphens and the dots of P.S. join."""
    return sum(word.isupper() for word in _CAPITAL_WORD.findall(text))


def all_capital(language: str) -> Check:
    """Make a check for text in capital letters that is not certainly in another language.

    As in IFEval: where no language can be told, in a few words, the case alone decides.
    """
    return lambda text, _: text.isupper() and is_language(text, language) is not False


def all_lowercase(language: str) -> Check:
    """Make a check for text in small letters that is not certainly in another language."""
    return lambda text, _: text.islower() and is_language(text, language) is not False


def no_comma(text: str, arguments: Arguments) -> bool:
    """Say whether the text has no comma of any script."""
    del arguments
    return not re.search("[,\uff0c\u060c\ufe50\u3001\uff64]", text)


def _without_marks(text: str) -> str:
    """Drop accents and vowels that stand by themselves, which would divide a word."""
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFC", text)
    return "".join(char for char in composed if unicodedata.category(char)[0] != "M")


KEYWORDS = {"keywords": phrases}
FORBIDDEN = {"forbidden_words": phrases}
FREQUENCY = {"keyword": phrase, "relation": relation, "frequency": whole}
LETTERS = {"letter": letter, "let_relation": relation, "let_frequency": whole}
LANGUAGE = {"language": phrase}
SENTENCES = {"relation": relation, "num_sentences": whole}
WORDS = {"relation": relation, "num_words": whole}
PARAGRAPHS = {"num_paragraphs": whole}
NTH = {"num_paragraphs": whole, "nth_paragraph": whole, "first_word": phrase}
POSTSCRIPT = {"postscript_marker": phrase}
BULLETS = {"num_bullets": whole}
SECTIONS = {"section_spliter": phrase, "num_sections": whole}
PROMPT = {"prompt_to_repeat": phrase}
END = {"end_phrase": phrase}
CAPITALS = {"capital_relation": relation, "capital_frequency": whole}

num_sentences = check_count(lambda text: len(sentences(text)), "num_sentences")
num_words = check_count(lambda text: len(re.findall(r"\w+", _without_marks(text))), "num_words")
num_capitals = check_count(capital_words, "capital_frequency", "capital_relation")

CHECKS: dict[str, Kind] = {
    "keywords:existence": Kind(existence, KEYWORDS, "every keyword, also inside a word"),
    "keywords:forbidden_words": Kind(no_forbidden_words, FORBIDDEN, "none of these words"),
    "keywords:frequency": Kind(frequency, FREQUENCY, "how often a keyword, also inside a word"),
    "keywords:letter_frequency": Kind(letter_frequency, LETTERS, "how often a letter"),
    "language:response_language": Kind(response_language, LANGUAGE, "in this language"),
    "length_constraints:number_sentences": Kind(num_sentences, SENTENCES, "how many sentences"),
    "length_constraints:number_paragraphs": Kind(
        divided_paragraphs, PARAGRAPHS, "so many paragraphs, *** between them"
    ),
    "length_constraints:number_words": Kind(num_words, WORDS, "how many words"),
    "length_constraints:nth_paragraph_first_word": Kind(
        _first_word, NTH, "so many paragraphs, a blank line between them; one starts with a word"
    ),
    "detectable_content:number_placeholders": Kind(
        lambda text, a: placeholders(text) >= a["num_placeholders"],
        {"num_placeholders": whole},
        "at least so many [placeholders]",
    ),
    "detectable_content:postscript": Kind(_postscript, POSTSCRIPT, "a postscript"),
    "detectable_format:number_bullet_lists": Kind(bullets, BULLETS, "exactly so many * or -"),
    "detectable_format:constrained_response": Kind(_constrained, {}, "one of three answers"),
    "detectable_format:number_highlighted_sections": Kind(
        lambda text, a: highlights(text) >= a["num_highlights"],
        {"num_highlights": whole},
        "at least so many *highlights*",
    ),
    "detectable_format:multiple_sections": Kind(
        lambda text, a: sections(text, a["section_spliter"]) >= a["num_sections"],
        SECTIONS,
        "at least so many sections under a mark and a number",
    ),
    "detectable_format:json_format": Kind(is_json, {}, "JSON and nothing else"),
    "detectable_format:title": Kind(titled, {}, "a <<title>>"),
    "combination:two_responses": Kind(two_responses, {}, "two responses, ****** between them"),
    "combination:repeat_prompt": Kind(repeats_prompt, PROMPT, "the prompt first"),
    "startend:end_checker": Kind(ends, END, "these words last"),
    "startend:quotation": Kind(quoted, {}, "all in double quotation marks"),
    "change_case:capital_word_frequency": Kind(num_capitals, CAPITALS, "how many CAPITAL words"),
    "change_case:english_capital": Kind(all_capital("en"), {}, "English, no small letter"),
    "change_case:english_lowercase": Kind(all_lowercase("en"), {}, "English, no capital letter"),
    "punctuation:no_comma": Kind(no_comma, {}, "no comma"),
}
