"""Normalise texts and split them into words, for duplicate and contamination checks.

A run of digits is one word, so that 12 and 13 are as different as cat and dog. Scripts
written without spaces (Han, Kana, Thai) are split into characters.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import TypeVar

from tasks.algorithms.folding import folded_parts

ValueT = TypeVar("ValueT")

_LONGEST = 32
"""Characters of a part that is remembered: longer ones, as of scripts without spaces, are rare."""
_MOST = 65_536
"""Parts that are remembered: about 12 MB."""

_WORD = re.compile(
    r"\d+(?:[.,]\d+)*"  # a number, with its separators
    r"|[\u0e00-\u0e7f\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # one spaceless character
    r"|[^\W\d\u0e00-\u0e7f\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"  # a word
    r"|[^\w\s]"  # one sign: in '3 - 4' it is content
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def normalise(text: str) -> str:
    """Fold spelling, width, case and whitespace: `algorithms/folding.py`."""
    return " ".join(parts(text))


def parts(text: str) -> list[str]:
    """Fold width and case, and split at whitespace; no word and no number goes across parts."""
    return folded_parts(text)


def words(text: str) -> list[str]:
    """Split a normalised text into numbers, words, signs and characters of spaceless scripts."""
    return _WORD.findall(text)


def numbers(text: str) -> tuple[str, ...]:
    """Return the numbers of a text in their order."""
    return tuple(_NUMBER.findall(text))


def is_sign(word: str) -> bool:
    """True for a punctuation mark or symbol."""
    return unicodedata.category(word[0])[0] in "PS"


class ByPart(dict[str, ValueT]):
    """What is computed of each part when it is first asked for: few parts make up most texts."""

    def __init__(self, compute: Callable[[str], ValueT]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, part: str) -> ValueT:
        value = self._compute(part)
        if len(part) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[part] = value
        return value
