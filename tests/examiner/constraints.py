"""Classes of answers to checkable instructions: texts that follow one by construction, or break it.

Every constraint of a data set's row is a question of its own. Texts are put together from plain
sentences, so that nobody disagrees about their number of words or sentences; a count is met or
missed by exactly one. English, Spanish and French; other constraints make nothing.
"""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.examiner.case import AnswerClass, Question

_SENTENCES = {
    "en": (
        "The market opens early in the morning.",
        "People walk along the quiet river.",
        "My neighbour sells fresh bread there.",
        "The children wait for the old bus.",
        "Nobody knows when the rain will stop.",
        "She reads a long letter by the window.",
    ),
    "es": (
        "El mercado abre temprano por la noche.",
        "La gente camina junto al mar.",
        "Mi vecino vende pan fresco en la plaza.",
        "Los chicos esperan el viejo coche.",
        "Nadie sabe cuando termina la lluvia.",
        "Ella lee una larga carta en casa.",
    ),
    "fr": (
        "Le petit village dort dans la montagne.",
        "Les enfants jouent avec le chien noir.",
        "Ma voisine vend du pain dans la rue.",
        "Nous marchons vers la grande place.",
        "Le vieux bus arrive avec un retard.",
        "Elle lit une longue lettre dans le jardin.",
    ),
}
_FEWER = ("less than", "moins de")
_AT_MOST = ("como máximo",)
_AT_LEAST = ("at least", "al menos", "au moins")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One instruction without its language prefix, with its arguments."""

    kind: str
    arguments: dict[str, Any]
    language: str


Build = Callable[[Constraint, bool, random.Random], str | None]


def numbered_list(question: Question, source: random.Random) -> str | None:
    """Write sentences as a numbered list; its numbers are no sentences."""
    asked: Constraint = question.facts
    if asked.kind != "length_constraints:number_sentences":
        return None
    wanted = _target(asked, "num_sentences", True)
    if wanted is None or not 2 <= wanted <= 60:
        return None
    lines = [_sentences(asked.language, 1, source) for _ in range(wanted)]
    return "\n".join(f"{place}. {line}" for place, line in enumerate(lines, start=1))


def _target(asked: Constraint, name: str, right: bool) -> int | None:
    """Return the count that just meets the relation, or just misses it."""
    count = asked.arguments.get(name)
    relation = next((v for k, v in asked.arguments.items() if k.endswith("relation")), "at least")
    if not isinstance(count, int):
        return None
    if relation in _AT_LEAST:
        return count if right else count - 1
    if relation in _FEWER:
        return count - 1 if right else count
    return (count if right else count + 1) if relation in _AT_MOST else None


def _words(asked: Constraint, right: bool, source: random.Random) -> str | None:
    wanted = _target(asked, "num_words", right)
    if wanted is None or wanted < 1:
        return None
    words = _sentences(asked.language, wanted, source).split()[:wanted]
    return " ".join([*words[:-1], words[-1].rstrip(".") + "."])


def _number_sentences(asked: Constraint, right: bool, source: random.Random) -> str | None:
    wanted = _target(asked, "num_sentences", right)
    return _sentences(asked.language, wanted, source) if wanted and wanted > 0 else None


def _paragraphs(asked: Constraint, right: bool, source: random.Random) -> str | None:
    wanted = asked.arguments["num_paragraphs"] + (0 if right else source.choice((-1, 1)))
    return "\n***\n".join(_several(asked, wanted, source)) if wanted > 0 else None


def _highlights(asked: Constraint, right: bool, source: random.Random) -> str | None:
    if asked.arguments.get("relation", "at least") not in _AT_LEAST:
        return None
    wanted = asked.arguments["num_highlights"] - (not right)
    return "\n".join(
        f"*{line}*" if n < wanted else line
        for n, line in enumerate(_several(asked, wanted + 2, source))
    )


def _placeholders(asked: Constraint, right: bool, source: random.Random) -> str | None:
    if asked.arguments.get("relation", "at least") not in _AT_LEAST:
        return None
    wanted = asked.arguments["num_placeholders"] - (not right)
    marks = " ".join(f"[name {place}]" for place in range(wanted))
    return f"{_sentences(asked.language, 2, source)} {marks}"


def _bullets(asked: Constraint, right: bool, source: random.Random) -> str:
    wanted = asked.arguments["num_bullets"] + (0 if right else source.choice((-1, 1)))
    lines = [f"* {line}" for line in _several(asked, wanted, source)]
    return "\n".join([_sentences(asked.language, 1, source), *lines])


def _sections(asked: Constraint, right: bool, source: random.Random) -> str | None:
    if asked.arguments.get("relation", "at least") not in _AT_LEAST:
        return None
    wanted, mark = asked.arguments["num_sections"] - (not right), asked.arguments["section_spliter"]
    lines = _several(asked, max(wanted, 1), source)
    return "\n\n".join(
        f"{mark} {n}\n{line}" if n <= wanted else line for n, line in enumerate(lines, 1)
    )


def _capital_words(asked: Constraint, right: bool, source: random.Random) -> str | None:
    wanted = _target(asked, "capital_frequency", right)
    if wanted is None or wanted < 0:
        return None
    text = _sentences(asked.language, 2, source)
    return f"{text} {' '.join(['MARKET'] * wanted)}".strip()


def _existence(asked: Constraint, right: bool, source: random.Random) -> str | None:
    keywords = asked.arguments["keywords"]
    if not right:
        keywords = keywords[1:]
    text = f"{_sentences(asked.language, 3, source)} {' '.join(keywords)}."
    missing = asked.arguments["keywords"][0].casefold()
    return None if not right and missing in text.casefold() else text


def _forbidden(asked: Constraint, right: bool, source: random.Random) -> str | None:
    text = _sentences(asked.language, 4, source)
    words = {word.strip(".").casefold() for word in text.split()}
    if any(word.casefold() in words or " " in word for word in asked.arguments["forbidden_words"]):
        return None
    word = source.choice(asked.arguments["forbidden_words"])
    return text if right else f"{text} {source.choice((word, word.upper(), f'({word})'))}"


def _frequency(asked: Constraint, right: bool, source: random.Random) -> str | None:
    wanted, word = _target(asked, "frequency", right), asked.arguments["keyword"].strip()
    text = _sentences(asked.language, 2, source)
    if wanted is None or wanted < 0 or word.casefold() in text.casefold():
        return None
    return f"{text} {'; '.join([word] * wanted)}".strip()


def _letters(asked: Constraint, right: bool, source: random.Random) -> str | None:
    del source
    wanted, letter = _target(asked, "let_frequency", right), asked.arguments["letter"]
    base = next((s for s in _SENTENCES[asked.language] if letter.lower() not in s.lower()), None)
    if wanted is None or wanted < 0 or base is None:
        return None
    return f"{base} {' '.join([letter] * wanted)}".strip()


def _title(asked: Constraint, right: bool, source: random.Random) -> str:
    whole = "##La place##" if asked.language == "fr" else "<<The river>>"
    mark = whole if right else source.choice(("<The river>", "**The river**", "The river"))
    return f"{mark}\n\n{_sentences(asked.language, 3, source)}"


def _json(asked: Constraint, right: bool, source: random.Random) -> str:
    text = json.dumps({"text": _sentences(asked.language, 2, source), "count": 2}, indent=1)
    if right:
        return source.choice((text, f"```json\n{text}\n```", f"```\n{text}\n```"))
    return source.choice((text[:-1], f"Here it is: {text}", text.replace('"', "'")))


def _postscript(asked: Constraint, right: bool, source: random.Random) -> str | None:
    mark, text = asked.arguments["postscript_marker"], _sentences(asked.language, 3, source)
    if re.search(r"\bnota", text, re.IGNORECASE):
        return None
    return f"{text}\n\n{mark} {_sentences(asked.language, 1, source)}" if right else text


def _quotation(asked: Constraint, right: bool, source: random.Random) -> str:
    text = _sentences(asked.language, 3, source)
    return f'"{text}"' if right else source.choice((text, f'"{text}', f'{text}"'))


def _ending(asked: Constraint, right: bool, source: random.Random) -> str:
    text, phrase = _sentences(asked.language, 3, source), asked.arguments["end_phrase"]
    return (
        f"{text} {phrase}"
        if right
        else source.choice((text, f"{phrase} {text}", f"{text} {phrase[:-3]}"))
    )


def _two_responses(asked: Constraint, right: bool, source: random.Random) -> str:
    one, two = (" ".join(source.sample(_SENTENCES[asked.language], n)) for n in (2, 3))
    if right:
        return f"{one}\n******\n{two}"
    return source.choice(
        (f"{one}\n\n{two}", f"{one}\n******\n{one}", f"{one}\n******\n{two}\n******\n{one[:-1]}!")
    )


def _repeat(asked: Constraint, right: bool, source: random.Random) -> str:
    text, prompt = _sentences(asked.language, 3, source), asked.arguments["prompt_to_repeat"]
    return (
        f"{prompt}\n\n{text}" if right else source.choice((text, f"{text}\n{prompt}", prompt[5:]))
    )


def _no_comma(asked: Constraint, right: bool, source: random.Random) -> str:
    text = _sentences(asked.language, source.randint(1, 6), source)
    return text if right else text.replace(" ", ", ", 1)


def _lowercase(asked: Constraint, right: bool, source: random.Random) -> str:
    text = _sentences(asked.language, source.randint(1, 4), source)
    return text.lower() if right else text


def _capital(asked: Constraint, right: bool, source: random.Random) -> str:
    text = _sentences(asked.language, source.randint(1, 4), source)
    return text.upper() if right else f"{text.upper()} {text}"


def _nth_paragraph(asked: Constraint, right: bool, source: random.Random) -> str | None:
    number, nth = asked.arguments["num_paragraphs"], asked.arguments["nth_paragraph"]
    word = asked.arguments["first_word"]
    parts = _several(asked, number, source)
    if not 1 <= nth <= number or " " in word:
        return None
    if right:
        parts[nth - 1] = f"{word} {parts[nth - 1]}"
    elif any(part.split()[0].casefold() == word.casefold() for part in parts):
        return None
    return "\n\n".join(parts)


def _constrained(asked: Constraint, right: bool, source: random.Random) -> str | None:
    if asked.language != "en":
        return None
    answers = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
    return (
        source.choice(answers) if right else source.choice(("Yes.", "I would say no.", "Perhaps."))
    )


def _sentences(language: str, number: int, source: random.Random) -> str:
    """Return so many sentences, different ones as long as there are any."""
    known = _SENTENCES[language]
    start = source.randrange(len(known))
    return " ".join(known[(start + place) % len(known)] for place in range(number))


def _several(asked: Constraint, number: int, source: random.Random) -> list[str]:
    return [_sentences(asked.language, 1, source) for _ in range(number)]


_COUNTS: dict[str, Build] = {
    "length_constraints:number_words": _words,
    "length_constraints:number_sentences": _number_sentences,
    "length_constraints:number_paragraphs": _paragraphs,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:multiple_sections": _sections,
    "change_case:capital_word_frequency": _capital_words,
}
_KEYWORDS: dict[str, Build] = {
    "keywords:existence": _existence,
    "keywords:forbidden_words": _forbidden,
    "keywords:frequency": _frequency,
    "keywords:letter_frequency": _letters,
}
_FORMS: dict[str, Build] = {
    "detectable_format:title": _title,
    "detectable_format:json_format": _json,
    "detectable_format:constrained_response": _constrained,
    "detectable_content:postscript": _postscript,
    "startend:quotation": _quotation,
    "startend:end_checker": _ending,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeat,
    "punctuation:no_comma": _no_comma,
    "length_constraints:nth_paragraph_first_word": _nth_paragraph,
}
_CASES: dict[str, Build] = {
    f"change_case:{language}_{case}": build
    for language in ("english", "spanish", "french")
    for case, build in (("lowercase", _lowercase), ("capital", _capital))
}
_TABLES = {
    "count": (
        _COUNTS,
        "words, sentences, paragraphs, highlights: just met, or missed by one",
        "at least 5 words -> 5 words",
    ),
    "keywords": (
        _KEYWORDS,
        "keywords, forbidden words and letters: just met, or missed by one",
        "'story' twice -> story; story",
    ),
    "form": (
        _FORMS,
        "titles, JSON, postscripts, endings, quotation marks",
        "a title -> <<The river>>",
    ),
    "case": (
        _CASES,
        "capitals or small letters only, also in short texts",
        "lowercase -> the market opens early.",
    ),
}
KINDS = frozenset(name for table, _, _ in _TABLES.values() for name in table)
"""What can be built."""


def _class(name: str, right: bool) -> AnswerClass:
    table, about, example = _TABLES[name]

    def make(question: Question, source: random.Random) -> str | None:
        asked: Constraint = question.facts
        build = table.get(asked.kind)
        return build(asked, right, source) if build else None

    said = "followed" if right else "broken"
    return AnswerClass(f"{name}_{said}", right, f"{about} ({said})", example, make)


RIGHT = (
    *(_class(name, True) for name in _TABLES),
    AnswerClass(
        "numbered_list",
        True,
        "the numbers of a list are no sentences",
        "2 sentences -> 1. It opens. 2. It closes.",
        numbered_list,
    ),
)
WRONG = tuple(_class(name, False) for name in _TABLES)
