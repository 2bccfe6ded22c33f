"""Remove training items that overlap with a held-out problem.

An item is dropped if its text equals that of a held-out problem, or if it shares a run of
13 words with one, punctuation excluded (GPT-3, appendix C). As in GPT-3, a run that occurs
in more than ten different training texts is a common phrase and is not counted as a leak.
Differs: in scripts without spaces a word counts as three characters. A run more than half of which
lies in common phrases is not counted either, because a template or an idiom meets it with one word
more on either side. Of benchmarks, the same is done once more with all numbers masked: it finds the
question with other numbers, by the runs more than half of which are no numbers (a polynomial and a
list of numbers are everybody's). Problems that are drawn from a source share its templates, so that
their numbers are not masked.

Suites are held in memory, as the hashes of their runs; training items pass by in batches, twice.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data_schemas.rows import Outcome, Problem, QuarantinedItem
from tasks.curation.cleaning.wording import is_sign, normalise, words
from tasks.curation.cleaning.writing_systems import SPACELESS, primary
from tasks.curation.items import Item, Partition, refuse, task_name
from tasks.curation.overlap.fingerprints import (
    NUMBER,
    SIGN,
    Fingerprinter,
    Hashes,
    Key,
    join,
    masked,
    runs,
)

STAGE = "contamination"
REASON = "contaminated"
NGRAM = 13
"""Consecutive equal words that count as overlap (GPT-3, appendix C)."""
COMMON = 10
"""A run that occurs in more different training texts than this is a common phrase."""
CHARACTERS_PER_WORD = 3
_FILTER_BITS = 22
"""Size of a table that most runs of clean texts are not in: 4 MB, which a CPU keeps in its
cache."""


@dataclass(frozen=True, slots=True)
class EncodedItems:
    """Training items of one batch, in numbers."""

    keys: Hashes
    """[items, keys, 2]."""
    words: Sequence[Hashes]
    is_spaceless: NDArray[np.bool_]
    """Items in a language that is written without spaces."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Which items of a batch share which runs with the suites."""

    items: NDArray[np.int64]
    runs: NDArray[np.int64]
    """Positions in the index."""


class Suites:
    """Index of all held-out problems."""

    def __init__(
        self, held_out: Sequence[Item], ngram: int = NGRAM, *, any_numbers: bool = False
    ) -> None:
        """Index the problems.

        Args:
            held_out: all suites together; of two with the same text the first is named.
            ngram: number of consecutive equal words that counts as overlap.
            any_numbers: all numbers count as equal, and only runs are compared.
        """
        self._ngram = ngram
        self._read = masked if any_numbers else _as_is
        self._any_numbers = any_numbers
        self._names = [item.record.id for item in held_out]
        result = Fingerprinter().of(held_out)
        self._texts: dict[bytes, int] = {}
        for place, keys in enumerate(result.keys):
            for key in (Key.CONTENT, Key.WORDING):
                self._texts.setdefault(keys[key].tobytes(), place)
        self._plain = [_plain_words(item) for item in held_out]
        self._sizes = [ngram * _unit(item.record.language) for item in held_out]
        texts = [self._read(hashes[hashes & SIGN == 0]) for hashes in result.words]
        hashes, ends = join(map(runs, texts, self._sizes))
        wordy = np.concatenate([[], *map(_is_wordy, texts, self._sizes)]).astype(np.bool_)
        self._places = np.flatnonzero(wordy) if any_numbers else np.arange(len(hashes))
        self._runs, first, self._inverse = np.unique(
            hashes[self._places], return_index=True, return_inverse=True
        )
        self._owner_of = np.searchsorted(ends, self._places, "right") - 1
        self._owners = self._owner_of[first]
        self._starts = self._places[first] - ends[self._owners]
        self._filter = np.zeros(1 << _FILTER_BITS, np.bool_)
        self._filter[_slot(self._runs)] = True

    def twin(self, keys: Hashes) -> str | None:
        """Return the held-out problem whose text is that of an item."""
        if self._any_numbers:  # "What is 1 + 2?" is everybody's question
            return None
        for key in (Key.CONTENT, Key.WORDING):
            if (place := self._texts.get(keys[key].tobytes())) is not None:
                return self._names[place]
        return None

    def hits(self, batch: EncodedItems) -> Hits:
        """Return every run that an item of a batch shares with a suite."""
        items: list[NDArray[np.int64]] = []
        results: list[NDArray[np.int64]] = []
        for is_spaceless, unit in ((False, 1), (True, CHARACTERS_PER_WORD)):
            members = np.flatnonzero(batch.is_spaceless == is_spaceless)
            flat, ends = join([batch.words[place] for place in members.tolist()])
            is_word = flat & SIGN == 0
            owners = np.repeat(members, np.diff(ends))[is_word]
            size = self._ngram * unit
            hashes = runs(self._read(flat[is_word]), size)
            last = owners[size - 1 :] if len(hashes) else owners[:0]
            maybe = self._filter[_slot(hashes)] & (owners[: len(hashes)] == last)
            hashes, mine = hashes[maybe], owners[: len(maybe)][maybe]
            places = np.searchsorted(self._runs, hashes)
            places[places == len(self._runs)] = 0
            same = self._runs[places] == hashes if len(hashes) else maybe[:0]
            items.append(mine[same])
            results.append(places[same])
        count = max(1, len(self._runs))
        pairs = np.unique(np.concatenate(items) * count + np.concatenate(results))
        return Hits(pairs // count, pairs % count)

    def phrases(self, common: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the runs that are common phrases, or lie in them by more than half of their words.

        A run that several problems have is a phrase if it is one wherever it stands.
        """
        is_common = np.isin(self._inverse, common)
        sizes = np.array(self._sizes, np.int64)[self._owner_of]
        inside = np.zeros(len(sizes), np.int64)
        for order in (slice(None), slice(None, None, -1)):
            places, owners = self._places[order], self._owner_of[order]
            nearest = np.maximum.accumulate(np.where(is_common[order], np.arange(len(places)), -1))
            result = (nearest >= 0) & (owners[nearest] == owners)
            overlap = sizes[order] - abs(places - places[nearest])
            inside[order] += np.where(result, np.maximum(0, overlap), 0)
        is_new = np.zeros(len(self._runs), np.bool_)
        is_new[self._inverse[2 * inside <= sizes]] = True
        return np.flatnonzero(~is_new)

    def describe(self, indices: Iterable[int]) -> str:
        """Name the problem and the words of the first shared run in alphabetical order."""
        texts = []
        for run in indices:
            owner, start = int(self._owners[run]), int(self._starts[run])
            texts.append((self._plain[owner][start : start + self._sizes[owner]], owner))
        text, owner = min(texts)
        numbers = ", with any numbers" if self._any_numbers else ""
        return f"held-out {self._names[owner]}: '{' '.join(text)}'{numbers}"


class CommonRuns:
    """Counts in how many different training texts a run of the suites occurs."""

    def __init__(self) -> None:
        self._texts: defaultdict[int, set[bytes]] = defaultdict(set)

    def add(self, batch: EncodedItems, hits: Hits) -> None:
        """Count a batch: a problem and its demonstration have the same text and count once."""
        texts = batch.keys[:, Key.CONTENT]
        for item, run in zip(hits.items.tolist(), hits.runs.tolist(), strict=True):
            occurrences = self._texts[run]
            if len(occurrences) <= COMMON:
                occurrences.add(texts[item].tobytes())

    def frequent_runs(self) -> NDArray[np.int64]:
        """Return the runs that occur in too many."""
        return np.array([run for run, texts in self._texts.items() if len(texts) > COMMON], int)


def find_overlap(
    suites: Suites, batch: EncodedItems, hits: Hits, phrases: NDArray[np.int64]
) -> Iterator[tuple[int, str]]:
    """Yield the items of a batch that overlap with a suite, in order, each with the detail."""
    leaks: dict[int, list[int]] = defaultdict(list)
    rare = ~np.isin(hits.runs, phrases)
    for item, run in zip(hits.items[rare].tolist(), hits.runs[rare].tolist(), strict=True):
        leaks[item].append(run)
    for item in range(len(batch.keys)):
        twin = suites.twin(batch.keys[item])
        if twin is not None:
            yield item, f"its words are those of held-out {twin}"
        elif item in leaks:
            yield item, suites.describe(leaks[item])


def decontaminate(
    training: Sequence[Item],
    held_out: Sequence[Item],
    ngram: int = NGRAM,
    *,
    any_numbers: bool = False,
) -> Partition:
    """Drop every training item that overlaps with a held-out problem, and name that problem.

    Args:
        training: problems and demonstrations.
        held_out: all held-out suites together.
        ngram: number of consecutive equal words that counts as overlap.
        any_numbers: see `Suites`.
    """
    suites = Suites(held_out, ngram, any_numbers=any_numbers)
    result = Fingerprinter().of(training)
    batch = EncodedItems(
        result.keys, result.words, is_spaceless([i.record.language for i in training])
    )
    hits, common = suites.hits(batch), CommonRuns()
    common.add(batch, hits)
    phrases = suites.phrases(common.frequent_runs())
    details = dict(find_overlap(suites, batch, hits, phrases))
    survivors = [item for place, item in enumerate(training) if place not in details]
    return survivors, [drop(training[place], detail) for place, detail in details.items()]


def is_spaceless(languages: Sequence[str]) -> NDArray[np.bool_]:
    """Return which languages are written without spaces."""
    return np.array([_unit(language) > 1 for language in languages], np.bool_)


def as_items(problems: Sequence[Problem]) -> list[Item]:
    """Wrap problems of an earlier run, whose prompt template can no longer be separated.

    Tasks that another library plays are compared as a whole: their prompts may be equal.
    """
    return [Item(one, task_name(one) if one.is_outside else one.prompt_text) for one in problems]


def drop(item: Item, detail: str) -> QuarantinedItem:
    """Record that an item overlaps with a suite."""
    return refuse(item, STAGE, Outcome.DROPPED, REASON, detail)


def _as_is(hashes: Hashes) -> Hashes:
    return hashes


def _unit(language: str) -> int:
    return CHARACTERS_PER_WORD if primary(language) in SPACELESS else 1


def _plain_words(item: Item) -> tuple[str, ...]:
    return tuple(word for word in words(normalise(item.content)) if not is_sign(word))


def _is_wordy(hashes: Hashes, size: int) -> NDArray[np.bool_]:
    """Return for each run of words whether more than half of them are no numbers."""
    counts = np.cumsum([0, *(hashes & NUMBER == 0)])
    return 2 * (counts[size:] - counts[:-size]) > size


def _slot(hashes: Hashes) -> NDArray[np.int64]:
    return (hashes >> np.uint64(64 - _FILTER_BITS)).astype(np.int64)
