"""Text encoders: a model behind an endpoint, and the one that the settings name."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from tasks.curation.meaning.folder_encoder import FolderEncoder
from tasks.curation.meaning.protocol import Encoder, Vectors, unit
from tasks.errors import DataError
from tasks.gym.judging.endpoint import ApiKey, EndpointClient, Failed, Operation, Refused
from tasks.gym.judging.opening import key_of

# A text encoder at an OpenAI-compatible endpoint, such as `vllm serve` of an embedding model.

PATH = "/embeddings"
BATCH = 32
"""Texts of a request."""
MOST_BYTES = BATCH * 8192 * 32
"""Of a response, whose vectors have thousands of numbers."""
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
            if isinstance(reply, Failed):
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
        raise Refused(f"not a list of embeddings: {content[:200]!r}") from error
    if not numbers:
        raise Refused("a vector is empty")
    return rows


# Open the text encoder that the settings name.


def open_encoder(settings: JudgeSettings) -> Encoder | None:
    """Open an endpoint or a folder; None if no encoder is set.

    Raises:
        SettingsError: it cannot be opened.
    """
    match settings.kind:
        case JudgeKind.NONE:
            return None
        case JudgeKind.HTTP:
            return EndpointEncoder(
                settings.address,
                settings.model,
                key=key_of(settings.address),
                timeout_s=settings.timeout_s,
            )
        case JudgeKind.MODEL:
            return FolderEncoder(Path(settings.address))
