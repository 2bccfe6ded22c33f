"""The contract of what encodes texts as vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
    """Scale vectors to length 1; zeros stay zeros, whose cosine with everything is 0."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    norms[norms == 0.0] = 1.0
    return vectors / norms
