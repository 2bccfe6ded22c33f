"""A small tokenizer, a small text classifier and builders of items."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from data_schemas.rows import Demonstration, Domain, Message, Parent, Problem, Role
from tasks.curation.items import Item
from tasks.engines.chat import load_tokenizer
from tasks.store.files import sha256_bytes
from tasks.training.foundation.tokenizer import train_tokenizer

WORDS = ("bake", "buy", "sell", "the", "red", "cake", "shop", "how", "bomb")
WINDOW = 16
"""Tokens that the classifier reads."""
LABELS = {0: "safe", 1: "toxic"}


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


@pytest.fixture(scope="session")
def text_classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train it: a text with `bomb` is toxic, wherever the word stands."""
    torch.manual_seed(0)
    vocabulary = {word: place for place, word in enumerate(("[PAD]", "[UNK]", *WORDS))}
    config = DistilBertConfig(
        vocab_size=len(vocabulary),
        max_position_embeddings=WINDOW + 2,
        n_layers=1,
        n_heads=1,
        dim=16,
        hidden_dim=16,
        dropout=0.0,
        attention_dropout=0.0,
        seq_classif_dropout=0.0,
        id2label=LABELS,
        label2id={label: place for place, label in LABELS.items()},
    )
    model = DistilBertForSequenceClassification(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(120):
        length = 1 + step % WINDOW
        tokens = torch.randint(2, len(vocabulary) - 1, (32, length))
        harmful = torch.rand(32) < 0.5
        tokens[harmful, torch.randint(0, length, (int(harmful.sum()),))] = vocabulary["bomb"]
        model(tokens, labels=harmful.long()).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    folder = tmp_path_factory.mktemp("classifier")
    model.save_pretrained(folder)
    words = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", model_max_length=WINDOW
    ).save_pretrained(folder)
    return folder
