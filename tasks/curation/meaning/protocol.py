"""The contract of what encodes texts as vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.errors import DataError

Vectors = NDArray[np.float32]
"""[texts, features], of length 1."""


class Encoder(Protocol):
    """Encodes texts, so that those of one meaning have a large cosine.

    Contract: one vector per text, in order, of length 1; equal texts have equal vectors up to
    rounding.
    """

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode every text, at least one.

        Raises:
            DataError: a text cannot be encoded.
        """
        ...


def unit(vectors: NDArray[np.float32]) -> Vectors:
    """Scale vectors to length 1; zeros stay zeros, whose cosine with everything is 0.

    Raises:
        DataError: a value is not finite: what it belongs to would be near to nothing.
    """
    if not np.isfinite(vectors).all():
        raise DataError("the encoder returned vectors with values that are no finite numbers")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    norms[norms == 0.0] = 1.0
    return vectors / norms
