"""The Spanish and French instructions of M-IFEval (2502.04688), each a predicate on the response.

Where the kind is one of IFEval's, its check is used. "Como máximo" is at most, "moins de" fewer
than.

Differs: a postscript mark or an answer like "No." counts as a word of its own, not inside another
("PS" is not in "temps"); two different answers are none; the first words of a paragraph may be
several; a French title stands in ##double sharps##, as the prompts ask; words whose accents
are to be restored have to be there. Words are counted by \\w+ instead of spaCy, and accents
are looked for after Unicode composition.
"""

import re
import string
import unicodedata
from collections.abc import Callable

from tasks.rewards.instructions.arguments import (
    Arguments,
    Check,
    Kind,
    counted,
    one_of,
    relation,
    spellings,
    whole,
)
from tasks.rewards.instructions.checks import (
    BULLETS,
    CAPITALS,
    END,
    FORBIDDEN,
    FREQUENCY,
    KEYWORDS,
    LANGUAGE,
    LETTERS,
    NTH,
    PARAGRAPHS,
    POSTSCRIPT,
    PROMPT,
    SECTIONS,
    SENTENCES,
    WORDS,
    all_capital,
    all_lowercase,
    bullets,
    divided_paragraphs,
    ends,
    existence,
    frequency,
    highlights,
    is_json,
    letter_frequency,
    no_comma,
    no_forbidden_words,
    nth_paragraph,
    num_capitals,
    num_sentences,
    num_words,
    placeholders,
    quoted,
    repeats_prompt,
    response_language,
    sections,
    starred_bullets,
    titled,
    two_responses,
)
from tasks.rewards.instructions.measures import words

_INFORMAL = re.compile(r"(?<!\w)(?:tu|te|toi|ton|ta|tes)(?!\w)|(?<!\w)t['\u2019]\w", re.IGNORECASE)
_INFLECTIONS = ("", "s", "x", "e", "es")
"""Of French nouns and adjectives: a set wants "leçon" where its prompt says "lecons"."""
_FRENCH_QUOTES = {'"': '"', "'": "'", "«": "»", "“": "”"}


def one_answer(*answers: str) -> Check:
    """Make a check that exactly one of the answers is in the text, as words of its own.

    In a text all in capitals or all in small letters, as another instruction may ask, the case of
    the answer is that of the text.
    """
    patterns = [re.compile(rf"(?<!\w){re.escape(answer)}") for answer in answers]
    lowered = [re.compile(rf"(?<!\w){re.escape(answer.lower())}") for answer in answers]

    def check(text: str, arguments: Arguments) -> bool:
        del arguments
        one_case = text.isupper() or text.islower()
        chosen, read = (lowered, text.lower()) if one_case else (patterns, text)
        return sum(bool(pattern.search(read)) for pattern in chosen) == 1

    return check


def postscript(text: str, arguments: Arguments) -> bool:
    """Say whether the text has the mark as a word of its own; blanks may follow its dots."""
    marker = re.sub(r"\s", "", arguments["postscript_marker"].casefold())
    pattern = re.escape(marker).replace(r"\.", r"\.\s?").removesuffix(r"\s?")
    pattern += "" if marker.endswith(".") else r"(?!\w)"
    return re.search(rf"(?<!\w){pattern}", text.casefold()) is not None


def _first_words(text: str, arguments: Arguments) -> bool:
    paragraph = nth_paragraph(text, arguments)
    start = re.escape(arguments["first_word"].strip().lower())
    return paragraph is not None and bool(
        re.match(rf"[\"'“«¿¡\s]*{start}(?![\w-])", paragraph.lower())
    )


def _words_with(letters: str) -> Callable[[str], int]:
    wanted = frozenset(letters)
    return lambda text: sum(not wanted.isdisjoint(word.lower()) for word in words(text))


def _marked(opening: str, closing: str) -> Check:
    def check(text: str, arguments: Arguments) -> bool:
        del arguments
        closed = text.split(closing)[:-1]
        return any(re.search(r"[^\W_]", part.partition(opening)[2]) for part in closed)

    return check


def _plain(text: str) -> str:
    return "".join(
        char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char)
    )


def _restored(text: str, arguments: Arguments) -> bool:
    found = {word.lower() for word in re.findall(r"\w+", unicodedata.normalize("NFC", text))}
    stems: dict[str, str] = {}
    for bare, accented in arguments["word_to_accentuate"].items():
        word = unicodedata.normalize("NFC", accented).lower()
        forms = [word + ending for ending in _INFLECTIONS[: None if len(word) > 2 else 1]]
        stem = word.rstrip(string.ascii_lowercase)
        stems |= {bare.lower(): stem} | {_plain(form): stem for form in forms}
        if found.isdisjoint(forms):
            return False
    return all(word.startswith(stems.get(_plain(word), "")) for word in found)


def _french_quoted(text: str, arguments: Arguments) -> bool:
    del arguments
    text = text.strip()
    return len(text) > 1 and _FRENCH_QUOTES.get(text[0]) == text[-1]


def _absent(text: str, arguments: Arguments) -> bool:
    return arguments["forbidden_char"] not in unicodedata.normalize("NFC", text).lower()


_SHARED: dict[str, Kind] = {
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
        _first_words, NTH, "so many paragraphs, a blank line between them; one starts with words"
    ),
    "detectable_content:postscript": Kind(postscript, POSTSCRIPT, "a postscript"),
    "detectable_format:json_format": Kind(is_json, {}, "JSON and nothing else"),
    "combination:two_responses": Kind(two_responses, {}, "two responses, ****** between them"),
    "combination:repeat_prompt": Kind(repeats_prompt, PROMPT, "the prompt first"),
    "startend:end_checker": Kind(ends, END, "these words last"),
    "change_case:capital_word_frequency": Kind(num_capitals, CAPITALS, "how many CAPITAL words"),
    "punctuation:no_comma": Kind(no_comma, {}, "no comma"),
}

_SPANISH: dict[str, Kind] = {
    "detectable_content:number_placeholders": Kind(
        counted(placeholders, "num_placeholders"),
        {"relation": relation, "num_placeholders": whole},
        "how many [placeholders]",
    ),
    "detectable_format:number_highlighted_sections": Kind(
        counted(highlights, "num_highlights"),
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
    "detectable_format:title": Kind(titled, {}, "a <<title>>"),
    "startend:quotation": Kind(quoted, {}, "all in double quotation marks"),
    "change_case:spanish_capital": Kind(all_capital("es"), {}, "Spanish, no small letter"),
    "change_case:spanish_lowercase": Kind(all_lowercase("es"), {}, "Spanish, no capital letter"),
    "punctuation:question_marks": Kind(_marked("¿", "?"), {}, "a ¿question?"),
    "punctuation:exclamation_marks": Kind(_marked("¡", "!"), {}, "an ¡exclamation!"),
    "special_character:tildes": Kind(
        counted(_words_with("áéíóú"), "num_words"), WORDS, "how many words with an acute accent"
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
    "detectable_content:number_placeholders": Kind(
        lambda text, a: placeholders(text) >= a["num_placeholders"],
        {"num_placeholders": whole},
        "at least so many [placeholders]",
    ),
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
    "detectable_format:number_bullet_lists": Kind(bullets, BULLETS, "exactly so many * or -"),
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
