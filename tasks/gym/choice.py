"""Score whether the response picks the right option, in any of eleven languages.

Gold: {"correct": [aliases], "others": [[aliases of a competing option], ...]}.
Only the text after the first final-answer marker counts. A line before it that consists of an
option alone counts too, so that a second answer cannot repair a wrong first one. An option that is
denied ("not X", "X is wrong") is not asserted. A right option of one letter counts at the beginning
of a clause, after words like "I choose option"; the clauses before may only deny other options.
The right option must not be denied anywhere and must not be a guess ("maybe X", "X or something
else").
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Annotated

from pydantic import AfterValidator, Field

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, response_fault, scored
from tasks.gym.denials import (
    DENIED_AFTER,
    DENIED_BEFORE,
    DENIED_WITH,
    HEDGED_AFTER,
    HEDGED_BEFORE,
    LEAD,
    OR_BEFORE,
    WINDOW,
    clauses,
    fold,
    plain,
)
from tasks.gym.protocol import Gold, verify_answer

MAX_MENTIONS = 500
"""Mentions of options; a response with more counts as flooded."""
_MARKER = re.compile(
    unicodedata.normalize(
        "NFKC",
        r"####|\\boxed|(?:(?<!\w)(?:the|so|thus|hence|therefore),?\s+)*"
        r"(?:(?<!\w)final\s+)?answer\s*(?:is(?!\w|')|:)|"
        r"jawapan(?:nya)?\s*(?:akhir\s*|yang\s+(?:betul|tepat)\s*)?(?:ialah|adalah|:)|"
        r"jawaban(?:nya)?\s*(?:akhir\s*|yang\s+(?:benar|tepat)\s*)?(?:adalah|ialah|:)|"
        r"(?:(?<!\w)a\s+)?resposta\s*(?:final\s*|cert[ao]\s*|corret[ao]\s*)?(?:é|:)|"
        r"(?:(?<!\w)la\s+)?respuesta\s*(?:final\s*|correcta\s*)?(?:es(?!\w)|:)|"
        r"(?:(?<!\w)la\s+)?(?:bonne\s+)?réponse\s*(?:finale\s*|correcte\s*)?(?:est(?!\w)|:)|"
        r"(?:(?<!\w)die\s+)?(?:richtige\s+)?antwort\s*(?:ist(?!\w)|lautet|:)|"
        r"(?:(?<!\w)la\s+)?risposta\s*(?:finale\s*|giusta\s*|corretta\s*)?(?:è|:)|"
        r"đáp\s*án\s*(?:đúng\s*)?(?:là|:)|câu\s*trả\s*lời\s*(?:đúng\s*)?(?:là|:)|"
        r"คำตอบ\s*(?:คือ|:)|(?:正[確确])?答案\s*(?:是|為|为|:)",
    )
)
"""Announces the answer. An article belongs to it: "A resposta" does not name option A."""
_STYLE = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm))\s*(?=\{)")
_AND = "and|dan|e|y|et|und|và|และ|กับ|和|與|与|及|跟|暨"
"""Words that may replace `&` in the name of an option."""
_SPACELESS_AND = re.compile(r"(?<=\S)(?:และ|[和與与及])(?=\S)")
_WORD_LETTERS = frozenset("aeiouy")
"""Options of one letter that are also words: "a" is an article."""
_LETTER_ALONE = re.compile(
    rf"(?<!\w)([{''.join(sorted(_WORD_LETTERS))}])(?=[*_\"”`]|\s+[-\u2013\u2014]\s)"
)
"""Such a letter with a sign after it, which no word has."""
_AFTER_LETTER = (
    "is|are|or|because|since|as|é|es|est|ist|adalah|ialah|karena|kerana|vì|porque|parce|weil|"
    "but|sondern|sino|mais|mas|melainkan|tetapi|mà|แต่เป็น|แต่"
)
_CONTRAST = r"แต่|(?<!\w)(?:but|sondern|melainkan|tetapi|sino|mais|mas|mà) "
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_BORDER = re.compile(
    r"(?<=[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff])(?=[0-9a-z])|"
    r"(?<=[0-9a-z])(?=[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff])"
)
"""Between scripts with and without spaces: `选B` is two words."""
_NO_WORD = rf"(?= ?[|?]| ?$| (?:{_AFTER_LETTER}|&|{_AND})(?!\w))"
_LETTERS = "".join(sorted(_WORD_LETTERS))
_NAMING = re.compile(
    rf"(?:\A|(?<=\| )|(?={_CONTRAST})){LEAD}"
    rf"(?<!\w)(?P<name>[{_LETTERS}]{_NO_WORD}|[0-9a-z](?<![{_LETTERS}]))(?!\w)"
)
"""A clause that begins with a letter, or with words that announce it."""
_Span = tuple[int, int]


def _visible(text: str) -> str:
    if not fold(text):
        raise ValueError(f"{text!r} has no visible characters to search for")
    return text


Alias = Annotated[str, AfterValidator(_visible)]


class Choice(Gold):
    """Names of the right option and of every competing option."""

    correct: tuple[Alias, ...] = Field(min_length=1, strict=False)
    others: tuple[tuple[Alias, ...], ...] = Field(default=(), strict=False)


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if the right option is asserted and no competing one is, else 0."""
    return verify_answer(problem, response, Choice, _check)


def _check(gold: Choice, answer: str) -> Verdict:
    asserted = _BORDER.sub(" ", _asserted(gold, answer))
    named = _mentions(gold.correct, asserted, right=True)
    others = [(option[0], _mentions(option, asserted, right=False)) for option in gold.others]
    if len(named) + sum(len(spans) for _, spans in others) > MAX_MENTIONS:
        return response_fault("flooded", f"more than {MAX_MENTIONS} mentions of options")
    # "Shoes" inside the right answer "Running Shoes" is not a second answer, nor the reverse.
    rivals = [
        (name, span)
        for name, spans in others
        for span in spans
        if span not in named and not _inside(span, named)
    ]
    spans = [span for _, span in rivals]
    until = _names_until(asserted, spans)
    right = [
        span
        for span in named
        if not _inside(span, spans) and (span[0] < until or not _is_letter(asserted, span))
    ]
    denied = _denied(asserted, [*spans, *right])
    for name, span in rivals:
        if span not in denied:
            return scored(0.0, "several_answers" if right else "wrong", f"asserts {name!r}")
    if not right:
        return scored(0.0, "wrong", f"none of {list(gold.correct)[:4]!r} in {asserted[:80]!r}")
    if any(span in denied or _is_denied(asserted, span, named) for span in right):
        return scored(0.0, "wrong", f"denied in {asserted[:80]!r}")
    asking = [alias for alias in gold.correct if plain(alias).rstrip().endswith("?")]
    asked = _mentions(asking, asserted, right=True)
    if any(_is_hedged(asserted, span, asks=span in asked) for span in right):
        return scored(0.0, "hedged", asserted[:80])
    return scored(1.0, "correct", asserted[:80])


def _asserted(gold: Choice, answer: str) -> str:
    """Return the clauses that answer: those after the marker, and options alone before it."""
    text = _LETTER_ALONE.sub(r"\1 | ", _STYLE.sub("", plain(answer)).replace("c'est", "est"))
    marker = _MARKER.search(text)
    if marker is None or not fold(text[marker.end() :]):
        return clauses(text)
    before = text[: marker.start()]
    lead = clauses(before)[-WINDOW:]
    taken_back = DENIED_BEFORE.search(lead) or HEDGED_BEFORE.search(lead)
    said = " ".join((lead if taken_back else "", text[marker.end() :]))
    names = {fold(alias) for option in (gold.correct, *gold.others) for alias in option}
    alone = [line for line in before.splitlines() if fold(line.replace("|", " ")) in names]
    return " | ".join(clauses(part) for part in (*alone, said))


def _mentions(aliases: Sequence[str], text: str, *, right: bool) -> list[_Span]:
    """Find an option. A single letter that is right counts only where a clause names it."""
    found: list[_Span] = []
    for alias in aliases:
        folded = fold(alias)
        if right and len(folded) == 1 and folded.isascii():
            names = (match.span("name") for match in _NAMING.finditer(text))
            named = (span for span in names if text[slice(*span)] == folded)
            found += islice(named, MAX_MENTIONS + 1)
            continue
        found += [
            match.span() for match in islice(_pattern(alias).finditer(text), MAX_MENTIONS + 1)
        ]
    return found


def _is_letter(text: str, span: _Span) -> bool:
    return span[1] - span[0] == 1 and text[span[0]].isascii()


def _names_until(text: str, others: Sequence[_Span]) -> int:
    """Return where the first clause ends that names no other option."""
    start = 0
    for end in re.finditer(rf"\||{_CONTRAST}", text):
        says = text[start : end.start()].strip(" |?")
        if says and not any(start <= span[0] < end.start() for span in others):
            return end.start()
        start = end.end()
    return len(text)


def _denied(text: str, spans: Sequence[_Span]) -> set[_Span]:
    """Return the options that the words before them deny, also `C` in `not A or C`.

    Later text cannot withdraw a wrong answer.
    """
    denied: set[_Span] = set()
    last = 0
    for span in sorted(spans):
        with_last = denied and DENIED_WITH.match(text[last : span[0]][:WINDOW])
        if with_last or DENIED_BEFORE.search(_around(text, span)[0]):
            denied.add(span)
            last = max(last, span[1])
    return denied


def _inside(span: _Span, longer: Sequence[_Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in longer if span != (start, end))


def _is_denied(text: str, span: _Span, named: Sequence[_Span]) -> bool:
    """Say whether an option is denied; the "no" of `B) no` is its name if the option is no."""
    before, after = _around(text, span)
    denial = DENIED_AFTER.match(after)
    said = denial and (span[1] + denial.end() - len(denial[0].lstrip(" |")), span[1] + denial.end())
    return bool(DENIED_BEFORE.search(before)) or (said is not None and said not in named)


def _is_hedged(text: str, span: _Span, *, asks: bool) -> bool:
    """Say whether an option is a guess; one that is a question itself keeps its mark."""
    before, after = _around(text, span)
    if asks:
        after = after.lstrip(" ?|")
    hedged = HEDGED_BEFORE.search(before) or HEDGED_AFTER.match(after) or OR_BEFORE.search(before)
    return hedged is not None


def _around(text: str, span: _Span) -> tuple[str, str]:
    start, end = span
    return text[max(0, start - WINDOW) : start], text[end : end + WINDOW]


@lru_cache(maxsize=4096)
def _pattern(alias: str) -> re.Pattern[str]:
    """Match an alias: as a substring in scripts without spaces, else between word boundaries.

    Its `&` may be written as a word or left out, its "and" as `&`.
    """
    words = [
        word
        for word in _BORDER.sub(" ", _SPACELESS_AND.sub(" & ", clauses(alias))).split()
        if word not in "|?"
    ]
    words = words or fold(alias).split()
    pattern, last = "", ""
    for place, word in enumerate(words):
        joins = 0 < place < len(words) - 1 and (word == "&" or word in _AND.split("|"))
        gap = "[ |?]*" if last and (_spaceless(last[-1]) or _spaceless(word[0])) else "[ |?]+"
        if joins:
            pattern += rf"(?:[ |?]*(?:&|{_AND}))" + ("?" if "&" in alias else "")
        else:
            pattern += (gap if last else "") + re.escape(word)
            last = word
    left = "" if _spaceless(words[0][0]) else r"(?<!\w)"
    right = "" if _spaceless(last[-1]) else r"(?!\w)"
    return re.compile(left + pattern + right + (_NO_WORD if fold(alias) in _WORD_LETTERS else ""))


def _spaceless(char: str) -> bool:
    return unicodedata.name(char, "").startswith(_SPACELESS)
