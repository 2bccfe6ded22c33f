"""Did the response pick the right option, in any of seven languages?

Gold: {"correct": [aliases], "others": [[aliases of a competing option], ...]}.
Only the text after the first final-answer marker counts; a line before it that is nothing but an
option counts too, so that a second answer cannot repair a wrong first one.
"""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, Field

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, scored
from tasks.rewards.protocol import Gold, judge

_MARKER = re.compile(
    unicodedata.normalize(
        "NFKC",
        r"####|\\boxed|(?:final\s+)?answer\s*(?:is|:)|jawapan(?:nya)?\s*(?:akhir\s*)?(?:ialah|adalah|:)|"
        r"jawaban(?:nya)?\s*(?:akhir\s*)?(?:adalah|ialah|:)|resposta\s*(?:final\s*)?(?:é|:)|"
        r"đáp\s*án\s*(?:là|:)|câu\s*trả\s*lời\s*(?:là|:)|คำตอบ\s*(?:คือ|:)|答案\s*(?:是|為|为|:)",
    )
)
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


def _visible(text: str) -> str:
    if not fold(text):
        raise ValueError(f"{text!r} has nothing to look for")
    return text


Alias = Annotated[str, AfterValidator(_visible)]


class Choice(Gold):
    """Names of the right option, and names of every competing one."""

    correct: tuple[Alias, ...] = Field(min_length=1, strict=False)
    others: tuple[tuple[Alias, ...], ...] = Field(default=(), strict=False)


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if the right option is asserted and no competing one is, else 0."""
    return judge(problem, response, Choice, _check)


def fold(text: str) -> str:
    """Bring text to the form in which options are compared: NFKC, case, no invisible characters.

    Punctuation becomes a space. Combining marks stay: Thai vowels are among them.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = (
        " " if unicodedata.category(char)[0] in "PSZ" or char.isspace() else char
        for char in text
        if unicodedata.category(char) not in ("Cf", "Cc") or char.isspace()
    )
    return " ".join("".join(kept).split())


def _check(gold: Choice, answer: str) -> Verdict:
    asserted = _asserted(gold, answer)
    right = [span for alias in gold.correct for span in _asserted_spans(fold(alias), asserted)]
    for option in gold.others:
        for alias in option:
            for start, end in _spans(fold(alias), asserted):
                # "Shoes" inside the right answer "Running Shoes" is not a second answer.
                if not any(a <= start and end <= b for a, b in right):
                    return scored(
                        0.0, "several_answers" if right else "wrong", f"asserts {alias!r}"
                    )
    if right:
        return scored(1.0, "correct", asserted[:80])
    return scored(0.0, "wrong", f"none of {list(gold.correct)[:4]!r} in {asserted[:80]!r}")


def _asserted(gold: Choice, answer: str) -> str:
    text = unicodedata.normalize("NFKC", answer).casefold()
    marker = _MARKER.search(text)
    if marker is None or not fold(text[marker.end() :]):
        return fold(text)
    names = {fold(alias) for option in (gold.correct, *gold.others) for alias in option}
    before = [fold(line) for line in text[: marker.start()].splitlines()]
    return " \n ".join([*(line for line in before if line in names), fold(text[marker.end() :])])


def _asserted_spans(alias: str, text: str) -> list[tuple[int, int]]:
    """Find the right option; a single letter counts only as the first word ("a" is an article)."""
    found = _spans(alias, text)
    return (
        [span for span in found if span[0] == 0] if len(alias) == 1 and alias.isascii() else found
    )


def _spans(alias: str, text: str) -> list[tuple[int, int]]:
    """Find an alias: as a substring in scripts without spaces, else between word boundaries."""
    left = "" if _spaceless(alias[0]) else r"(?<!\w)"
    right = "" if _spaceless(alias[-1]) else r"(?!\w)"
    return [match.span() for match in re.finditer(left + re.escape(alias) + right, text)]


def _spaceless(char: str) -> bool:
    return unicodedata.name(char, "").startswith(_SPACELESS)
