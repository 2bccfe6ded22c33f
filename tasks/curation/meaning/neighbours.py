"""Drop training items whose meaning is nearer to a benchmark's question than questions are.

The questions of one benchmark in one language are different questions, so that the cosine of each
with its nearest other one says how near different questions come, for this encoder and this
subject. An item is dropped if its cosine with a question exceeds what 99 % of the benchmark's own
questions have with their nearest [I]: the threshold needs no setting, and rises where a benchmark
is made of templates. It finds the reworded question; whether it finds a translation is up to the
encoder.

Letters: N items, Q questions, F features.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from data_schemas.prompts import Problem
from data_schemas.quarantine import Quarantined
from tasks.curation.cleaning.wording import normalise
from tasks.curation.contamination import drop
from tasks.curation.items import Item, Sieved
from tasks.curation.meaning.protocol import Encoder, Vectors
from tasks.errors import DataError

DIFFERENT = 0.99
"""Share of a benchmark's questions whose nearest other one is farther than the threshold."""
FEWEST = 20
"""A smaller benchmark says too little; it takes the highest threshold of the others."""
ROWS = 1024
"""Of a matrix of cosines that is in memory at once."""
_SHOWN = 80


class Neighbours:
    """The questions of all benchmarks, and how near to each a text may come."""

    def __init__(self, questions: Sequence[Item], encoder: Encoder) -> None:
        """Encode the questions.

        Args:
            questions: of all benchmarks. Tasks that another library plays have no text here.
            encoder: of the questions, and later of the items.

        Raises:
            DataError: no benchmark has enough questions in one language to set a threshold.
        """
        self._encoder = encoder
        self._questions = [item for item in questions if not _is_outside(item)]
        self._vectors_QF = encoder.encode([item.content for item in self._questions])
        self._limits_Q = self._limits()

    def sieve(self, items: Sequence[Item]) -> Sieved:
        """Keep the items that are near to no question; a problem's responses have its text."""
        texts = sorted({item.content for item in items if not _is_outside(item)})
        leaks = self._leaks(self._encoder.encode(texts)) if texts else []
        found = dict(zip(texts, leaks, strict=True))
        kept: list[Item] = []
        refused: list[Quarantined] = []
        for item in items:
            detail = "" if _is_outside(item) else found[item.content]
            if detail:
                refused.append(drop(item, detail))
            else:
                kept.append(item)
        return kept, refused

    def _limits(self) -> NDArray[np.float32]:
        """Return the cosine with every question that different questions rarely exceed."""
        classes: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, item in enumerate(self._questions):
            classes[item.record.source, item.record.language].append(place)
        limits_Q = np.full(len(self._questions), np.nan, np.float32)
        for places in classes.values():
            texts = [normalise(self._questions[place].content) for place in places]
            if len(set(texts)) >= FEWEST:
                limits_Q[places] = threshold(self._vectors_QF[places], texts)
        if np.isnan(limits_Q).all():
            raise DataError(
                f"no benchmark has {FEWEST} questions in one language, from which curation.encoder "
                "learns how near different questions are. Add a larger one, or leave it out."
            )
        return np.nan_to_num(limits_Q, nan=float(np.nanmax(limits_Q)))

    def _leaks(self, vectors_NF: Vectors) -> list[str]:
        """Return for every text what it is too near to; '' if it is near to nothing."""
        details: list[str] = []
        for start in range(0, len(vectors_NF), ROWS):
            cosines_NQ = vectors_NF[start : start + ROWS] @ self._vectors_QF.T
            worst_N = (cosines_NQ - self._limits_Q).argmax(1)
            nearest_N = cosines_NQ[np.arange(len(worst_N)), worst_N]
            details += [
                self._describe(place, cosine) if cosine > self._limits_Q[place] else ""
                for place, cosine in zip(worst_N.tolist(), nearest_N.tolist(), strict=True)
            ]
        return details

    def _describe(self, place: int, cosine: float) -> str:
        question = self._questions[place]
        text = " ".join(question.content.split())[:_SHOWN]
        limit = self._limits_Q[place]
        return f"held-out {question.record.id}: '{text}', cosine {cosine:.3f} > {limit:.3f}"


def threshold(vectors_QF: Vectors, texts: Sequence[str]) -> float:
    """Return the cosine with the nearest other question that 99 % of questions do not exceed.

    Args:
        vectors_QF: of the questions, [Q, F].
        texts: of the questions; those with the same one are not different.
    """
    first = list({text: place for place, text in enumerate(texts)}.values())
    vectors_QF = vectors_QF[first]
    nearest: list[float] = []
    for start in range(0, len(vectors_QF), ROWS):
        cosines = vectors_QF[start : start + ROWS] @ vectors_QF.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -1.0
        nearest += cosines.max(1).tolist()
    return float(np.quantile(nearest, DIFFERENT, method="higher"))


def _is_outside(item: Item) -> bool:
    return isinstance(item.record, Problem) and item.record.is_outside
