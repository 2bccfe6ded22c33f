"""Drop training items whose meaning is nearer to a benchmark's question than questions are.

The measure is the cosine of an encoder's vectors; `overlap/nearness.py` says how high it may be.
It finds the reworded question; whether it finds a translation is up to the encoder.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from data_schemas.rows import Problem, QuarantinedItem
from tasks.curation.contamination import drop
from tasks.curation.items import Item, Partition
from tasks.curation.meaning.protocol import Encoder
from tasks.curation.overlap.nearness import FEWEST, Nearness
from tasks.errors import DataError

DIFFERENT = 0.99
"""Share of a benchmark's questions whose nearest other one has a cosine below the threshold."""
_TOO_FEW = (
    f"no benchmark has {FEWEST} questions in one language, from which curation.encoder learns how "
    "near different questions are. Add a larger one, or leave it out."
)


class Neighbours:
    """The questions of all benchmarks, as an encoder sees them.

    Args:
        questions: of all benchmarks. Tasks that another library plays have no text here.
        encoder: of the questions, and later of the items.

    Raises:
        DataError: no benchmark has enough questions in one language to set a threshold.
    """

    def __init__(self, questions: Sequence[Item], encoder: Encoder) -> None:
        items = [item for item in questions if has_text(item)]
        if len(items) < FEWEST:
            raise DataError(_TOO_FEW)
        texts = [item.content for item in items]
        vectors_QF = encoder.encode(texts)

        def compare(texts: Sequence[str]) -> NDArray[np.float32]:
            return encoder.encode(texts) @ vectors_QF.T

        self._nearness = Nearness(items, texts, compare, DIFFERENT)
        if np.isinf(self._nearness.limits_Q).all():
            raise DataError(_TOO_FEW)

    def sieve(self, items: Sequence[Item]) -> Partition:
        """Keep the items that are near to no question; a problem's responses have its text."""
        texts = sorted({item.content for item in items if has_text(item)})
        results = dict(zip(texts, self._nearness.leaks(texts), strict=True))
        survivors: list[Item] = []
        refused: list[QuarantinedItem] = []
        for item in items:
            if detail := results.get(item.content, "") if has_text(item) else "":
                refused.append(drop(item, detail))
            else:
                survivors.append(item)
        return survivors, refused


def has_text(item: Item) -> bool:
    """Return whether there is something to encode: of an outside task, the content is its name."""
    is_outside = isinstance(item.record, Problem) and item.record.is_outside
    return bool(item.content.strip()) and not is_outside
