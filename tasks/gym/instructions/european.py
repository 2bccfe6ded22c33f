"""The Spanish and French instructions of M-IFEval (2502.04688), each a predicate on the response.

IFEval's kinds use IFEval's checks. "Como máximo" means at most, "moins de" fewer than.

Differs: a postscript mark or an answer like "No." counts only as a separate word ("PS" is not in
"temps"); two different answers count as none; the first words of a paragraph may be several; a
French title is in ##double sharps##, as the prompts ask; words whose accents are to be restored
must be in the text. Words are counted by \\w+ instead of spaCy, and accents
are looked for after Unicode composition.
"""

import re
import string
import unicodedata
from collections.abc import Callable

from tasks.gym.instructions.arguments import (
    Arguments,
    Check,
    Kind,
    check_count,
    one_of,
    relation,
    spellings,
    whole,
)
from tasks.gym.instructions.checks import (
    BULLETS,
    CHECKS,
    NTH,
    POSTSCRIPT,
    SECTIONS,
    WORDS,
    all_capital,
    all_lowercase,
    highlights,
    nth_paragraph,
    placeholders,
    sections,
    starred_bullets,
)
from tasks.gym.instructions.measures import words

_INFORMAL = re.compile(r"(?<!\w)(?:tu|te|toi|ton|ta|tes)(?!\w)|(?<!\w)t['\u2019]\w", re.IGNORECASE)
_INFLECTIONS = ("", "s", "x", "e", "es")
"""Endings of French nouns and adjectives: a data set asks for "leçon" where its prompt has
"lecons"."""
_FRENCH_QUOTES = {'"': '"', "'": "'", "«": "»", "“": "”"}


def one_answer(*answers: str) -> Check:
    """Make a check that exactly one of the answers is in the text, as separate words.

    In a text all in capitals or all in small letters, as another instruction may ask, the case of
    the answer is that of the text.
    """
    patterns = [re.compile(rf"(?<!\w){re.escape(answer)}") for answer in answers]
    lowered = [re.compile(rf"(?<!\w){re.escape(answer.lower())}") for answer in answers]

    def check(text: str, arguments: Arguments) -> bool:
        del arguments
        one_case = text.isupper() or text.islower()
        forms, haystack = (lowered, text.lower()) if one_case else (patterns, text)
        return sum(bool(pattern.search(haystack)) for pattern in forms) == 1

    return check


def postscript(text: str, arguments: Arguments) -> bool:
    """Say whether the text has the mark as a separate word; spaces may follow its dots."""
    marker = re.sub(r"\s", "", arguments["postscript_marker"].casefold())
    pattern = re.escape(marker).replace(r"\.", r"\.\s?").removesuffix(r"\s?")
    pattern += "" if marker.endswith(".") else r"(?!\w)"
    return re.search(rf"(?<!\w){pattern}", text.casefold()) is not None


def _first_words(text: str, arguments: Arguments) -> bool:
    paragraph = nth_paragraph(text, arguments)
    start = re.escape(arguments["first_word"].strip().lower())
    return paragraph is not None and bool(
        re.match(rf"[\"'“«¿¡\s*_]*{start}(?![\w-])", paragraph.lower())
    )


def _words_with(letters: str) -> Callable[[str], int]:
    letter_set = frozenset(letters)
    return lambda text: sum(not letter_set.isdisjoint(word.lower()) for word in words(text))


def _check_between(opening: str, closing: str) -> Check:
    def check(text: str, arguments: Arguments) -> bool:
        del arguments
        passages = text.split(closing)[:-1]
        return any(re.search(r"[^\W_]", part.partition(opening)[2]) for part in passages)

    return check


def _plain(text: str) -> str:
    return "".join(
        char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char)
    )


def _restored(text: str, arguments: Arguments) -> bool:
    results = {word.lower() for word in re.findall(r"\w+", unicodedata.normalize("NFC", text))}
    stems: dict[str, str] = {}
    for bare, accented in arguments["word_to_accentuate"].items():
        word = unicodedata.normalize("NFC", accented).lower()
        forms = [word + ending for ending in _INFLECTIONS[: None if len(word) > 2 else 1]]
        stem = word.rstrip(string.ascii_lowercase)
        stems |= {bare.lower(): stem} | {_plain(form): stem for form in forms}
        if results.isdisjoint(forms):
            return False
    return all(word.startswith(stems.get(_plain(word), "")) for word in results)


def _french_quoted(text: str, arguments: Arguments) -> bool:
    del arguments
    text = text.strip()
    return len(text) > 1 and _FRENCH_QUOTES.get(text[0]) == text[-1]


def _absent(text: str, arguments: Arguments) -> bool:
    return arguments["forbidden_char"] not in unicodedata.normalize("NFC", text).lower()


def _as_in_ifeval(*names: str) -> dict[str, Kind]:
    return {name: CHECKS[name] for name in names}


_SHARED: dict[str, Kind] = {
    **_as_in_ifeval(
        "keywords:existence",
        "keywords:forbidden_words",
        "keywords:frequency",
        "keywords:letter_frequency",
        "language:response_language",
        "length_constraints:number_sentences",
        "length_constraints:number_paragraphs",
        "length_constraints:number_words",
        "detectable_format:json_format",
        "combination:two_responses",
        "combination:repeat_prompt",
        "startend:end_checker",
        "change_case:capital_word_frequency",
        "punctuation:no_comma",
    ),
    "length_constraints:nth_paragraph_first_word": Kind(
        _first_words, NTH, "so many paragraphs, a blank line between them; one starts with words"
    ),
    "detectable_content:postscript": Kind(postscript, POSTSCRIPT, "a postscript"),
}

_SPANISH: dict[str, Kind] = {
    **_as_in_ifeval("detectable_format:title", "startend:quotation"),
    "detectable_content:number_placeholders": Kind(
        check_count(placeholders, "num_placeholders"),
        {"relation": relation, "num_placeholders": whole},
        "how many [placeholders]",
    ),
    "detectable_format:number_highlighted_sections": Kind(
        check_count(highlights, "num_highlights"),
        {"relation": relation, "num_highlights": whole},
        "how many *highlights*",
    ),
    "detectable_format:multiple_sections": Kind(
        lambda text, a: a["relation"](sections(text, a["section_spliter"]), a["num_sections"]),
        {**SECTIONS, "relation": relation},
        "how many sections under a mark and a number",
    ),
    "detectable_format:number_bullet_lists": Kind(
        lambda text, a: starred_bullets(text) == a["num_bullets"], BULLETS, "exactly so many *"
    ),
    "detectable_format:constrained_response": Kind(
        one_answer("Sí.", "No.", "Quizás."), {}, "one of Sí. No. Quizás."
    ),
    "change_case:spanish_capital": Kind(all_capital("es"), {}, "Spanish, no small letter"),
    "change_case:spanish_lowercase": Kind(all_lowercase("es"), {}, "Spanish, no capital letter"),
    "punctuation:question_marks": Kind(_check_between("¿", "?"), {}, "a ¿question?"),
    "punctuation:exclamation_marks": Kind(_check_between("¡", "!"), {}, "an ¡exclamation!"),
    "special_character:tildes": Kind(
        check_count(_words_with("áéíóú"), "num_words"), WORDS, "how many words with an acute accent"
    ),
    "special_character:enie": Kind(
        lambda text, a: _words_with("ñ")(text) == a["let_frequency"],
        {"let_frequency": whole},
        "exactly so many words with ñ",
    ),
    "special_character:dieresis": Kind(
        lambda text, a: _words_with("ü")(text) == a["let_frequency"],
        {"let_frequency": whole},
        "exactly so many words with ü",
    ),
}

_FRENCH: dict[str, Kind] = {
    **_as_in_ifeval(
        "detectable_content:number_placeholders",
        "detectable_format:number_highlighted_sections",
        "detectable_format:multiple_sections",
        "detectable_format:number_bullet_lists",
    ),
    "detectable_format:constrained_response": Kind(
        one_answer("Oui.", "Non.", "Peut-être."), {}, "one of Oui. Non. Peut-être."
    ),
    "detectable_format:title": Kind(
        lambda text, _: any(title.strip() for title in re.findall(r"##([^#\n]+)##", text)),
        {},
        "a ##title##",
    ),
    "startend:quotation": Kind(_french_quoted, {}, "all in quotation marks, French ones too"),
    "change_case:french_capital": Kind(all_capital("fr"), {}, "French, no small letter"),
    "change_case:french_lowercase": Kind(all_lowercase("fr"), {}, "French, no capital letter"),
    "detectable_content:no_digits": Kind(
        lambda text, _: re.search(r"\d", text) is None, {}, "no digit"
    ),
    "detectable_content:informal_address": Kind(
        lambda text, _: _INFORMAL.search(text) is not None,
        {},
        "says tu, te, toi, ton, ta, tes or t'",
    ),
    "special_character:accents": Kind(
        _restored, {"word_to_accentuate": spellings}, "these words, and only with their accents"
    ),
    "special_character:ethel_or_cedilla": Kind(
        _absent, {"forbidden_char": one_of("œ", "ç")}, "no œ, or no ç, in either case"
    ),
    "special_character:no_accents": Kind(
        lambda text, _: _plain(text) == unicodedata.normalize("NFD", text), {}, "no accent, no ç"
    ),
}

EUROPEAN: dict[str, Kind] = {
    **{f"es:{name}": kind for name, kind in {**_SHARED, **_SPANISH}.items()},
    **{f"fr:{name}": kind for name, kind in {**_SHARED, **_FRENCH}.items()},
}
