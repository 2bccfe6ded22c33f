"""Gold answers that no response can meet, although a verifier can read them.

Three kinds: text that lost the backslashes of its LaTeX where somebody's program read them as
escapes (`\\frac` became a form feed and `rac`), a whole solution where a value should be, and the
words by which exports write that there is none.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from data_schemas.rows import Problem
from tasks.curation.readers.missing import is_null
from tasks.gym.table import has_value_gold

_OF_TEXTS = ("choice", "extraction", "tool_calls", "bfcl_calls", "reference_text")
"""Verifiers that compare texts of the gold with those of a response, beside values. Expected output
of a program may have any character."""
_DAMAGE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufdd0-\ufdef\ufffe\uffff]")
"""Controls except tab and line ends, the replacement character and non-characters."""
_NO_BACKSLASH = re.compile(
    # \frac, \dfrac behind a lost "\d", \text, \tfrac, \tilde, \binom, \boxed, \bar, \vec, \begin
    r"(?<![\\A-Za-z])(?:rac|ext(?:bf|it|rm)?|frac|ilde|inom|oxed|ec|egin)\{"
    # \times, \theta, \right), \rangle, \neq, \beta: no word, or none that a value ends in
    r"|(?<![\\A-Za-z])(?:imes|heta|ightarrow|abla)(?![A-Za-z])"
    r"|(?<![\\A-Za-z])ight(?=[)\]}|.])"
    # behind its blank the rest of \tan, \tau, \to, \triangle, \nu, \neq, \not, \rho, \rangle
    r"|[\t\r\n](?:an|au|o|op|riangle|u|eq?|ot|mid|ho|angle|ceil|floor|ight)(?![A-Za-z])"
)
_SOLUTION = re.compile(r"####|</?think>|\n\s*\n")
_BOX = re.compile(r"\\f?boxed\b")
_PROSE = re.compile(r"(?<![\\A-Za-z])[^\W\d_]{2,}")
_SPACELESS = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_SENTENCES = re.compile(r"[.!?]\s+\S|。.+")
_MOST_WORDS = 20
"""Longest wording of a value. The longest of 9,000 of MATH, OlympiadBench, AMC and CMATH has 12."""
_MOST_OF_SENTENCES = 5
"""Where one follows another."""
_MOST_CHARACTERS = 60
"""Longest form of a value in a script without blanks."""


def gold_fault(problem: Problem) -> tuple[str, str] | None:
    """Return reason and detail if no response can meet the gold answer; None if one can.

    A gold that is no JSON has no fault here, nor has one of a verifier of one's own that does not
    declare `value_gold`: its verifier says so.
    """
    of_value = has_value_gold(problem.verifier)
    if not of_value and problem.verifier not in _OF_TEXTS:
        return None
    try:
        gold: object = json.loads(problem.answer)
    except ValueError:
        return None
    for text in _texts(gold):
        if bad := _DAMAGE.search(text):
            return "bad_answer", f"{bad[0]!a} in the answer {text[:60]!a}"
    if not of_value or not isinstance(gold, dict):
        return None
    values = cast("Mapping[str, object]", gold)
    return _value_fault(str(values.get("value", "")))


def _value_fault(value: str) -> tuple[str, str] | None:
    if eaten := _NO_BACKSLASH.search(value):
        return (
            "bad_answer",
            f"{eaten[0]!r} in the answer {value[:60]!r} lost a backslash: it was read as an escape",
        )
    if value.strip() and is_null(value):
        return "bad_answer", f"the answer is {value.strip()!r}, which is how exports write none"
    words, characters = len(_PROSE.findall(value)), len(_SPACELESS.findall(value))
    most = _MOST_OF_SENTENCES if _SENTENCES.search(value) else _MOST_WORDS
    is_text = _SOLUTION.search(value) or words > most or characters > _MOST_CHARACTERS
    if is_text and not _BOX.search(value):  # of which the verifier reads the box
        return "bad_answer", f"the answer is a text and no value: {value[:60]!r}..."
    return None


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for name, part in cast("Mapping[str, object]", value).items():
                yield name
                yield from _texts(part)
        case list():
            for part in cast("list[object]", value):
                yield from _texts(part)
        case _:
            return
