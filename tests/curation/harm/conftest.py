"""Classifiers whose config says something else."""

from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import DistilBertForSequenceClassification, PreTrainedTokenizerFast


@pytest.fixture
def relabelled(text_classifier: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a copy of the classifier whose config says something else."""

    def build(**changes: object) -> Path:
        model = DistilBertForSequenceClassification.from_pretrained(text_classifier)
        for name, value in changes.items():
            setattr(model.config, name, value)
        model.save_pretrained(tmp_path / "classifier")
        PreTrainedTokenizerFast.from_pretrained(text_classifier).save_pretrained(
            tmp_path / "classifier"
        )
        return tmp_path / "classifier"

    return build
