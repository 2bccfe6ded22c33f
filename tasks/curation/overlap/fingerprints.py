"""What of an item is compared with others, in numbers: keys of 128 bits and hashes of words.

The same text has the same numbers in every process and on every machine. A key is the beginning of
a BLAKE2b digest: two different texts of a billion share one with a probability below 1e-20.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from data_schemas.rows import Demonstration
from tasks.curation.cleaning.wording import ByPart, is_sign, normalise, numbers, parts, words
from tasks.curation.items import Item

Hashes = NDArray[np.uint64]

SIGN = np.uint64(1)
"""Set in the hash of a punctuation mark or symbol."""
ARITHMETIC = np.uint64(2)
"""Set in the hash of a sign that texts differ by: 3 - 4 is not 3 + 4."""
NUMBER = np.uint64(4)
"""Set in the hash of a number, and the whole hash of a number that is masked."""
_KEPT_SIGNS = frozenset("+-*/%^<=>()[]{}")
_REMEMBERED = 4


class Key(IntEnum):
    """Column of an item's keys."""

    PROMPT = 0
    """What is asked, as it is."""
    ANSWER = 1
    EXACT = 2
    """Kind, parent, normalised prompt and response, and answer: equal in exact duplicates."""
    NAME = 3
    """Kind and id."""
    BUCKET = 4
    """Kind, parent, numbers and answer: equal in near duplicates."""
    CONTENT = 5
    """Words of the content, with arithmetic signs."""
    WORDING = 6
    """Words of all that is asked, with arithmetic signs."""


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """What several items are compared by."""

    keys: Hashes
    """[items, keys, 2]."""
    words: list[Hashes]
    """One hash per word and sign of the content."""


@dataclass(frozen=True, slots=True)
class _Text:
    """What fingerprints need of a text."""

    normalised: str
    numbers: tuple[str, ...]
    words: Hashes


class Fingerprinter:
    """Computes fingerprints; remembers the hashes of frequent words."""

    def __init__(self) -> None:
        hashes = ByPart(_word_hash)
        self._words = ByPart(lambda part: b"".join(map(hashes.__getitem__, words(part))))
        # A problem and its demonstrations, which follow each other, have the same texts.
        self._text = lru_cache(_REMEMBERED)(self._read)

    def of(self, items: Sequence[Item]) -> Fingerprints:
        """Return the fingerprints of items, in order."""
        digests: list[bytes] = []
        texts: list[Hashes] = []
        for item in items:
            question = item.record.asked
            content, prompt = self._text(item.content), self._text(question, item.content)
            parent, figures, response = "", content.numbers, ""
            if isinstance(item.record, Demonstration):
                parent, response = item.record.parent, normalise(item.record.response)
                figures += numbers(response)
            group, answer = f"{item.kind}\n{parent}\n", item.answer_key
            digests += (
                _digest(question),
                _digest(answer),
                _digest(f"{group}{prompt.normalised} {response}".rstrip() + f"\n{answer}"),
                _digest(f"{item.kind}\n{item.record.id}"),
                _digest(f"{group}{' '.join(figures)}\n{answer}"),
            )
            texts += content.words, prompt.words
        by_words = len(Key) - Key.CONTENT
        keys = [_keys(digests, Key.CONTENT), _keys(_text_digests(texts), by_words)]
        return Fingerprints(np.concatenate(keys, axis=1), texts[::by_words])

    def words(self, text: str) -> Hashes:
        """Return the hash of every word and sign of a text."""
        return self._hashes(parts(text))

    def _read(self, text: str, start: str = "") -> _Text:
        """Read a text; of a prompt that starts with the content only the rest is split."""
        if start and text == start:
            return self._text(text)
        if start and text.startswith(start) and text[len(start)].isspace():
            head, rest = self._text(start), self._text(text[len(start) :])
            normalised = f"{head.normalised} {rest.normalised}".strip()
            figures, hashes = head.numbers + rest.numbers, np.concatenate([head.words, rest.words])
        else:
            split = parts(text)
            normalised, hashes = " ".join(split), self._hashes(split)
            figures = numbers(normalised)
        return _Text(normalised, figures, hashes)

    def _hashes(self, words: Iterable[str]) -> Hashes:
        return np.frombuffer(b"".join(map(self._words.__getitem__, words)), np.uint64)


def masked(hashes: Hashes) -> Hashes:
    """Return hashes of words in which all numbers are the same."""
    return np.where(hashes & NUMBER != 0, NUMBER, hashes)


def runs(hashes: Hashes, size: int) -> Hashes:
    """Return one hash for each run of `size` consecutive hashes; none if there are fewer."""
    count = len(hashes) - size + 1
    if count < 1:
        return np.empty(0, np.uint64)
    total = np.zeros(count, np.uint64)
    for offset in range(size):
        total = total * _FACTOR + hashes[offset : offset + count]
    return _mix(total)


def shingles(hashes: Hashes, size: int) -> Hashes:
    """Return the distinct runs of `size` words; a shorter text is a single run."""
    return np.unique(runs(hashes, min(size, len(hashes)))) if len(hashes) else _mix(_NO_WORD)


def every_shingle(texts: Sequence[Hashes], size: int) -> tuple[Hashes, NDArray[np.int64]]:
    """Return the runs of `size` words of many texts, also repeated ones; and where each begins.

    The runs of a text are those that `shingles` returns once each.
    """
    words, begins = join(texts)
    lengths = np.diff(begins)
    counts = np.maximum(1, lengths - size + 1)
    ends = np.concatenate([[0], np.cumsum(counts)])
    # Of the runs of all words after each other, those within one text.
    places = np.arange(ends[-1]) + np.repeat(begins[:-1] - ends[:-1], counts)
    result = np.zeros(ends[-1], np.uint64)
    is_long = np.repeat(lengths >= size, counts)
    result[is_long] = runs(words, size)[places[is_long]]
    for text in np.flatnonzero(lengths < size).tolist():
        result[ends[text]] = shingles(texts[text], size)[0]
    return result, ends


def distinct_shingles(texts: Sequence[Hashes], size: int) -> tuple[Hashes, NDArray[np.int64]]:
    """Return what `shingles` returns of many texts, one after the other; and where each begins."""
    hashes, ends = every_shingle(texts, size)
    for text in split(hashes, ends):
        text.sort()
    is_first = np.ones(len(hashes), np.bool_)
    is_first[1:] = hashes[1:] != hashes[:-1]
    is_first[ends[:-1]] = True
    return hashes[is_first], _count_before(is_first)[ends]


def split(hashes: Hashes, ends: NDArray[np.int64]) -> list[Hashes]:
    """Undo `join`."""
    return [hashes[begin:end] for begin, end in pairwise(ends.tolist())]


def join(texts: Iterable[Hashes]) -> tuple[Hashes, NDArray[np.int64]]:
    """Return all hashes in one array, and where each text begins and the last one ends."""
    parts = list(texts)
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return (np.concatenate(parts) if parts else np.empty(0, np.uint64)), ends


_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_NO_WORD = np.zeros(1, np.uint64)


def _mix(hashes: Hashes) -> Hashes:
    """Let every bit depend on every other one: the finalizer of SplitMix64 (Steele et al. 2014)."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


def _text_digests(texts: Sequence[Hashes]) -> list[bytes]:
    """Return the key of every text by its words; of signs only those of arithmetic count."""
    distinct = {id(text): text for text in texts}
    hashes, ends = join(distinct.values())
    is_kept = hashes & (SIGN | ARITHMETIC) != SIGN
    words = split(hashes[is_kept], _count_before(is_kept)[ends])
    digests = [_digest(text.tobytes()) for text in words]
    results = dict(zip(distinct, digests, strict=True))
    return [results[id(text)] for text in texts]


def _count_before(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many are chosen before each place, and before the end."""
    return np.concatenate([[0], np.cumsum(mask)])


def _keys(digests: Sequence[bytes], columns: int) -> Hashes:
    keys = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return keys.reshape(-1, columns, 2)


def _word_hash(word: str) -> bytes:
    marks = 0
    if is_sign(word):
        marks = int(SIGN) | (int(ARITHMETIC) if word in _KEPT_SIGNS else 0)
    elif word[0].isdecimal():
        marks = int(NUMBER)
    digest = blake2b(word.encode(errors="surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "little") & ~7 | marks).to_bytes(8, sys.byteorder)


def _digest(text: str | bytes) -> bytes:
    payload = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    return blake2b(payload, digest_size=16).digest()
