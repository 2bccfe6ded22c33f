"""A text encoder at an OpenAI-compatible endpoint, such as `vllm serve` of an embedding model."""

import json
from collections.abc import Sequence

import numpy as np

from tasks.curation.meaning.protocol import Vectors, unit
from tasks.errors import DataError
from tasks.gym.judging.endpoint import (
    ApiKey,
    EndpointClient,
    FailedPrompt,
    Operation,
    RejectedRequest,
)

PATH = "/embeddings"
BATCH = 32
"""Texts of a request."""
MOST_BYTES = BATCH * 8192 * 32
"""Largest size of a response, whose vectors have thousands of numbers."""
NUM_CONCURRENT = 16


class EndpointEncoder:
    """An Encoder that another process serves.

    Args:
        address: base URL, up to /v1.
        model: name under which it is served.
        key: of the endpoint.
        timeout_s: of one request of 32 texts, retries included.

    Raises:
        SettingsError: the address is no base URL, or the key cannot be a header.
    """

    def __init__(self, address: str, model: str, *, key: ApiKey, timeout_s: float) -> None:
        self._client = EndpointClient(
            address,
            model,
            Operation(PATH, _vectors_of, MOST_BYTES),
            key=key,
            timeout_s=timeout_s,
            max_concurrent=NUM_CONCURRENT,
        )

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode texts.

        Raises:
            DataError: some were not encoded: one without a vector could not be compared.
            SettingsError: the endpoint refuses the key, the address or the model.
        """
        parts = [list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        replies = dict(self._client.send([{"input": part} for part in parts]))
        rows: list[list[float]] = []
        for place, part in enumerate(parts):
            reply = replies[place]
            if isinstance(reply, FailedPrompt):
                raise DataError(f"{self._client.name} encoded no text: {reply.cause}")
            if len(reply) != len(part):
                raise DataError(
                    f"{self._client.name} returned {len(reply)} vectors of {len(part)} texts"
                )
            rows += reply
        if len({len(row) for row in rows}) > 1:
            raise DataError(f"{self._client.name} returned vectors of several lengths")
        return unit(np.array(rows, np.float32))


def _vectors_of(content: bytes) -> list[list[float]]:
    """Read a response body, whose vectors may come in any order."""
    try:
        entries = json.loads(content)["data"]
        rows = [one["embedding"] for one in sorted(entries, key=lambda one: int(one["index"]))]
        numbers = all(len(np.array(row, np.float32)) for row in rows)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise RejectedRequest(f"not a list of embeddings: {content[:200]!r}") from error
    if not numbers:
        raise RejectedRequest("a vector is empty")
    return rows
