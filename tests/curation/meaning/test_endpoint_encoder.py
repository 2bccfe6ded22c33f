"""What is sent for vectors, and what is made of the replies."""

import json

import numpy as np
import pytest

from tasks.curation.meaning.endpoint_encoder import BATCH, EndpointEncoder
from tasks.errors import DataError, SettingsError
from tasks.gym.judging.endpoint import ApiKey
from tests.chat_endpoint import endpoint, send


def encoder_at(address, timeout_s=20.0):
    return EndpointEncoder(address, "bge", key=ApiKey("THE_KEY", "secret"), timeout_s=timeout_s)


def reply(handler, rows):
    listed = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
    send(handler, json.dumps({"data": listed[::-1]}).encode())


def test_vectors_come_in_order_and_of_length_one():
    seen = []

    def lengths(handler, asked, _):
        seen.append((asked["model"], handler.path, handler.headers["Authorization"]))
        reply(handler, [[float(len(text)), 1.0] for text in asked["input"]])

    texts = ["x" * place for place in range(BATCH + 5)]
    with endpoint(lengths) as address:
        vectors = encoder_at(address).encode(texts)

    expected = np.array([[len(text), 1.0] for text in texts], np.float32)
    assert vectors == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True))
    assert [("bge", "/v1/embeddings", "Bearer secret")] * 2 == seen


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([[1.0, 2.0]], "returned 1 vectors of 2 texts"),
        ([[1.0, 2.0], [1.0]], "several lengths"),
        ([[1.0, float("nan")], [1.0, 2.0]], "no finite numbers"),
        ([[], []], "a vector is empty"),
        ("text", "not a list of embeddings"),
        ([["a"], ["b"]], "not a list of embeddings"),
    ],
)
def test_a_text_without_a_vector_stops_curation(rows, says):
    with (
        endpoint(lambda handler, *_: reply(handler, rows)) as address,
        pytest.raises(DataError, match=says),
    ):
        encoder_at(address).encode(["a", "b"])


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (400, DataError, r"bge at .* encoded no text: status 400.*too long"),
        (404, SettingsError, "no such address or model"),
    ],
)
def test_an_endpoint_that_refuses_is_named(status, error, says):
    with (
        endpoint(lambda handler, *_: send(handler, b"too long", status)) as address,
        pytest.raises(error, match=says),
    ):
        encoder_at(address).encode(["a"])
