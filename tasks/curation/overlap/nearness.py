"""What is nearer to a benchmark's question than its questions are to each other.

The questions of one benchmark in one language are different questions, so that the similarity of
each with its nearest other one says how near different questions come, for this measure and this
subject. What exceeds it with a question counts as that question [I]: the threshold needs no
setting, and rises where a benchmark is made of templates or repeats itself.

Letters: N texts, Q questions.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.curation.cleaning.wording import normalise
from tasks.curation.items import Item
from tasks.curation.overlap.fingerprints import Hashes, distinct_shingles, every_shingle

TextT = TypeVar("TextT")
"""A text as a measure reads it: the text itself, or its words as hashes."""
Compare = Callable[[Sequence[TextT]], NDArray[np.float32]]
"""Similarities [N, Q] of N texts with all questions."""

FEWEST = 100
"""Fewest questions of a benchmark with a threshold of its own: of n, about 1 in n clean ones
exceeds the threshold, so that a smaller one takes the highest threshold of the others."""
ROWS = 1024
"""Rows of a matrix of similarities that is in memory at once."""
NGRAM = 3
"""Words of a run, of the similarity of wordings."""
DIFFERENT = 0.995
"""Share of a benchmark's questions whose nearest other one has a wording below the threshold."""
PHRASES = 0.2
"""Texts with a lower similarity of wordings share phrases of their subject, whatever the benchmark
says: 250 questions of GSM8K have at most 0.08 with each other, and so have 3 % of the clean ones
with one of them [I]."""
_SHOWN = 80


class Nearness(Generic[TextT]):
    """The questions of all benchmarks, and how near to each a text may come.

    Args:
        questions: of all benchmarks.
        texts: of the questions, as the measure reads them.
        compare: the measure.
        different: share of a benchmark's questions whose nearest other one is below the threshold.
        lowest: threshold.
    """

    def __init__(
        self,
        questions: Sequence[Item],
        texts: Sequence[TextT],
        compare: Compare[TextT],
        different: float,
        lowest: float = -1.0,
    ) -> None:
        self._questions = questions
        self._compare = compare
        self.limits_Q = np.maximum(self._limits(texts, different), lowest)
        """Similarity with every question that a text may have; infinite if nothing is known."""

    def leaks(self, texts: Sequence[TextT]) -> list[str]:
        """Say of every text which question it is; '' if it is none."""
        details: list[str] = []
        for similar_NQ in self._blocks(texts):
            worst_N = (similar_NQ - self.limits_Q).argmax(1)
            nearest_N = similar_NQ[np.arange(len(worst_N)), worst_N]
            details += [
                self._describe(place, similarity) if similarity > self.limits_Q[place] else ""
                for place, similarity in zip(worst_N.tolist(), nearest_N.tolist(), strict=True)
            ]
        return details

    def _limits(self, texts: Sequence[TextT], different: float) -> NDArray[np.float32]:
        groups: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for place, item in enumerate(self._questions):
            # Of equal questions one is taken: they are not different.
            groups[item.record.source, item.record.language][normalise(item.content)] = place
        limits: dict[tuple[str, str], float] = {}
        for group, places in groups.items():
            if len(places) >= FEWEST:
                rows = np.array(list(places.values()))
                limits[group] = self._limit([texts[row] for row in rows], rows, different)
        others = max(limits.values(), default=np.inf)
        keys = [(item.record.source, item.record.language) for item in self._questions]
        return np.array([limits.get(key, others) for key in keys], np.float32)

    def _limit(self, texts: Sequence[TextT], rows: NDArray[np.int64], different: float) -> float:
        nearest: list[float] = []
        for similar_NQ in self._blocks(texts):
            others = similar_NQ[:, rows]
            own = np.arange(len(others))
            others[own, len(nearest) + own] = -1.0
            nearest += others.max(1).tolist()
        return float(np.quantile(nearest, different, method="higher"))

    def _blocks(self, texts: Sequence[TextT]) -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(texts), ROWS):
            yield self._compare(texts[start : start + ROWS])

    def _describe(self, place: int, similarity: float) -> str:
        question = self._questions[place]
        text = " ".join(question.content.split())[:_SHOWN]
        limit = self.limits_Q[place]
        return f"held-out {question.record.id}: '{text}', similarity {similarity:.3f} > {limit:.3f}"


def by_wording(questions: Sequence[Item], words: Sequence[Hashes]) -> Nearness[Hashes]:
    """Compare texts by the Jaccard similarity of their word 3-grams.

    Args:
        questions: of all benchmarks.
        words: of the questions, see `Fingerprints`.
    """
    vocabulary = np.unique(every_shingle(words, NGRAM)[0])
    questions_QS, sizes_Q = _shingle_table(words, vocabulary)

    def compare(texts: Sequence[Hashes]) -> NDArray[np.float32]:
        texts_NS, sizes_N = _shingle_table(texts, vocabulary)
        both_NQ = (texts_NS @ questions_QS.T).toarray()
        return both_NQ / (sizes_N[:, None] + sizes_Q - both_NQ)

    return Nearness(questions, words, compare, DIFFERENT, PHRASES)


def _shingle_table(
    texts: Sequence[Hashes], vocabulary: Hashes
) -> tuple[csr_array, NDArray[np.float32]]:
    """Return which known shingles S each text has, [N, S], and how many it has in all, [N]."""
    hashes, ends = distinct_shingles(texts, NGRAM)
    rows = np.repeat(np.arange(len(texts)), np.diff(ends))
    places = np.searchsorted(vocabulary, hashes)
    places[places == len(vocabulary)] = 0
    is_known = vocabulary[places] == hashes
    ones = np.ones(int(is_known.sum()), np.float32)
    shape = (len(texts), len(vocabulary))
    table_NS = csr_array((ones, (rows[is_known], places[is_known])), shape=shape)
    return table_NS, np.diff(ends).astype(np.float32)
