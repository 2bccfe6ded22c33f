"""A small tokenizer and builders of items, shared by the curation tests."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from data_schemas.demonstrations import Demonstration, Parent
from data_schemas.prompts import Domain, Message, Problem, Role
from tasks.curation.items import Item
from tasks.engines.chat import load_tokenizer
from tasks.foundation.tokenizer import train_tokenizer
from tasks.store.files import sha256_bytes


@pytest.fixture(scope="session")
def base_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    texts = ["Ana buys 3 apples at 4 each. How much does she pay in total?", "Which category?"]
    train_tokenizer(texts * 3, 320, 4096).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tokenizer(base_model: Path) -> PreTrainedTokenizerBase:
    return load_tokenizer(base_model)


@pytest.fixture(scope="session")
def make_problem() -> Callable[..., Item]:
    def build(key: str, prompt: str, value: str = "7", **changes: object) -> Item:
        fields = {
            "id": f"test/{key}",
            "domain": Domain.MATHS,
            "language": "en",
            "messages": (Message(role=Role.USER, content=prompt),),
            "verifier": "final_answer",
            "answer": json.dumps({"value": value}, separators=(",", ":")),
            "source": "test",
            "source_row": sha256_bytes(f"{key}{prompt}{value}".encode()),
        }
        content = changes.pop("content", prompt)
        assert isinstance(content, str)
        return Item(Problem.model_validate(fields | changes), content)

    return build


@pytest.fixture(scope="session")
def make_demonstration() -> Callable[..., Item]:
    def build(key: str, prompt: str, response: str, **changes: object) -> Item:
        fields = {
            "id": f"test/{key}",
            "parent": Parent.REASONING,
            "domain": Domain.MATHS,
            "language": "en",
            "messages": (Message(role=Role.USER, content=prompt),),
            "response": response,
            "source": "test",
            "source_row": sha256_bytes(f"{key}{prompt}{response}".encode()),
        }
        return Item(Demonstration.model_validate(fields | changes), prompt)

    return build
