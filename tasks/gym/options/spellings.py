"""Spellings of an answer that name an option all the same: another article, the question's number.

Applied before a text is searched for options, so that wrong ones are found as right ones are.
"""

import re
from collections.abc import Collection, Sequence

from tasks.gym.denials import WINDOW, fold

_ARTICLES = (
    ("a", "an", "the"),
    ("o", "a", "os", "as", "um", "uma"),
    ("el", "la", "los", "las", "un", "una"),
    ("le", "la", "les", "un", "une"),
    ("der", "die", "das", "ein", "eine", "einen"),
    ("il", "lo", "la", "i", "gli", "le", "un", "uno", "una"),
)
"""By language; an option that begins with one may be named with each of the others."""
# "1. B", "Q1: B", "(1) B" as an answer to the first question
_NUMBER = re.compile(
    r"\A[\s*_#]{0,6}(?:(?:q|question|soal|soalan|câu|questão|pregunta) ?)?"
    r"\(?(?P<number>\d{1,2})[.):]{1,2}\*{0,2}\s+(?=\S)"
)
_NUMBERED = re.compile(r"\n[\s*_#]{0,6}\(?\d{1,2}[.):]")


def respell(text: str, options: Sequence[Collection[str]]) -> str:
    """Write the article that an option has, and leave out the question's number.

    Args:
        text: of `plain`.
        options: their folded names.
    """
    return _with_articles(_without_number(text, options), options)


def _without_number(text: str, options: Sequence[Collection[str]]) -> str:
    """Leave out the number before an option; of `1. B`, `2. C` each may be another answer."""
    number = _NUMBER.match(text)
    names = set[str]().union(*options)
    if number is None or number["number"] in names or _NUMBERED.search(text):
        return text
    return text[number.end() :]


def _with_articles(text: str, options: Sequence[Collection[str]]) -> str:
    """Write `the blue box` and `Answer: blue box` as the option `a blue box`.

    Not where another option has the same words, `a box` beside `the box`.
    """
    names = [(name, *_divided(name)) for option in options for name in option]
    whole = fold(text) if len(text) <= WINDOW else ""
    words = [rest or name for name, _, rest in names]
    for name, article, rest in names:
        if not rest or words.count(rest) > 1:
            continue
        if whole == rest:
            return name
        others = "|".join(
            sorted({one for group in _ARTICLES if article in group for one in group} - {article})
        )
        text = re.sub(rf"(?<!\w)(?:{others}) (?={re.escape(rest)}(?!\w))", f"{article} ", text)
        if " " in rest:
            begins = (
                rf"([.:;,\"()*|\n]|(?<!\w)(?:and|or|is|not))( {{0,2}})(?={re.escape(rest)}(?!\w))"
            )
            text = re.sub(begins, rf"\1\2{article} ", text)
    return text


def _divided(name: str) -> tuple[str, str]:
    """Divide a name into its article and the words behind it; two empty texts without one."""
    article, _, rest = name.partition(" ")
    is_article = any(article in group for group in _ARTICLES)
    return (article, rest) if is_article and rest else ("", "")
