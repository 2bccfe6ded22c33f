"""What of an item is compared with others, in numbers: keys of 128 bits and hashes of words.

The same text has the same numbers in every process and on every machine. A key is the beginning of
a BLAKE2b digest: two different texts of a billion share one with a probability below 1e-20.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from data_schemas.demonstrations import Demonstration
from tasks.curation.cleaning.wording import is_sign, normalise, numbers, words
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
_MAX_CACHED = 200_000
"""Words whose hashes are kept: about 25 MB."""


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
    """Of several items."""

    keys: Hashes
    """[items, keys, 2]."""
    words: list[Hashes]
    """One hash per word and sign of the content."""


class _WordHashes(dict[str, int]):
    """Hash per word, computed when it is first asked for."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _MAX_CACHED:
            self.clear()
        marks = 0
        if is_sign(word):
            marks = int(SIGN) | (int(ARITHMETIC) if word in _KEPT_SIGNS else 0)
        elif word[0].isdecimal():
            marks = int(NUMBER)
        digest = blake2b(word.encode(errors="surrogatepass"), digest_size=8).digest()
        self[word] = value = int.from_bytes(digest, "little") & ~7 | marks
        return value


@dataclass(frozen=True, slots=True)
class _Text:
    """What fingerprints need of a text."""

    normalised: str
    words: Hashes
    key: bytes
    """By the words; see `text_key`."""
    digest: bytes
    """Of the text as it is."""


class Fingerprinter:
    """Computes fingerprints; remembers the hashes of frequent words."""

    def __init__(self) -> None:
        self._hashes = _WordHashes()
        # A problem and its demonstrations, which follow each other, have the same texts.
        self._text = lru_cache(_REMEMBERED)(self._read)

    def of(self, items: Sequence[Item]) -> Fingerprints:
        """Return the fingerprints of items, in order."""
        digests: list[bytes] = []
        spelled: list[Hashes] = []
        for item in items:
            content = self._text(item.content)
            prompt = self._text(item.record.asked, item.content)
            found, response = numbers(content.normalised), ""
            if isinstance(item.record, Demonstration):
                response = normalise(item.record.response)
                found += numbers(response)
            parent = item.record.parent if isinstance(item.record, Demonstration) else ""
            group, answer = f"{item.kind}\n{parent}\n", item.answer_key
            digests += (
                prompt.digest,
                _digest(answer),
                _digest(f"{group}{prompt.normalised} {response}".rstrip() + f"\n{answer}"),
                _digest(f"{item.kind}\n{item.record.id}"),
                _digest(f"{group}{' '.join(found)}\n{answer}"),
                content.key,
                prompt.key,
            )
            spelled.append(content.words)
        keys = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
        return Fingerprints(keys.reshape(len(items), len(Key), 2), spelled)

    def _read(self, text: str, start: str = "") -> _Text:
        """Read a text; of a prompt that starts with the content only the rest is split."""
        if text == start:
            return self._text(text)
        normalised = normalise(text)
        begun = self._text(start) if start else None
        if begun and normalised.startswith(f"{begun.normalised} "):
            rest = self.words(normalised[len(begun.normalised) :])
            hashes = np.concatenate([begun.words, rest])
        else:
            hashes = self.words(normalised)
        return _Text(normalised, hashes, text_key(hashes), _digest(text))

    def words(self, normalised: str) -> Hashes:
        """Return the hash of every word and sign of a normalised text."""
        found = words(normalised)
        return np.fromiter(map(self._hashes.__getitem__, found), np.uint64, len(found))


def text_key(hashes: Hashes) -> bytes:
    """Return the key of a text by its words; of signs only those of arithmetic count."""
    kept = hashes[hashes & (SIGN | ARITHMETIC) != SIGN]
    return blake2b(kept.tobytes(), digest_size=16).digest()


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
    found = np.zeros(ends[-1], np.uint64)
    is_long = np.repeat(lengths >= size, counts)
    found[is_long] = runs(words, size)[places[is_long]]
    for text in np.flatnonzero(lengths < size).tolist():
        found[ends[text]] = shingles(texts[text], size)[0]
    return found, ends


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


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
