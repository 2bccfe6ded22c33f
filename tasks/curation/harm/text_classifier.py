"""A text classifier from a folder: a Hugging Face checkpoint with a sequence classification head.

A text longer than the classifier reads is rated in overlapping windows, and a chat is as harmful as
the worst window of any of its turns: nothing is cut off unseen.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging as transformers_logging

from data_schemas.rows import Message
from tasks.curation.harm.protocol import Rating
from tasks.engines.driver import device_here
from tasks.errors import SettingsError

THRESHOLD = 0.5
"""Score of a harmful text: the decision of a classifier of two classes."""
HARMLESS = frozenset(
    {"safe", "harmless", "neutral", "nontoxic", "nottoxic", "nothate", "normal", "benign", "clean"}
    | {"ok", "acceptable", "notoffensive", "nonoffensive", "nothateful", "nonhate", "none"}
)
"""Labels of harmless texts, in lower case and without signs, as published classifiers name them."""
MULTI_LABEL = "multi_label_classification"
MAX_WINDOW = 4096
"""Tokens of a window, of a classifier that reads more."""
OVERLAP = 64
"""Tokens that two windows share, so that no sentence is only seen in halves."""
BATCH = 16


class TextClassifier:
    """A Guard on a sequence classifier, on this process's GPU if there is one."""

    def __init__(self, folder: Path) -> None:
        """Load it.

        Raises:
            SettingsError: it is not loadable, lacks weights, has no label of harmless texts, or a
                tokenizer that does not say what it cuts off; or the GPU cannot be used.
        """
        self._device = device_here()
        transformers_logging.disable_progress_bar()
        try:
            model, loading = AutoModelForSequenceClassification.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise SettingsError(
                f"curation.guard.address: {folder} is no loadable text classifier: {error}. Give a "
                "folder with config.json, *.safetensors and a tokenizer."
            ) from error
        if not self._tokenizer.is_fast:  # the others return no overflowing tokens as windows
            raise SettingsError(
                f"curation.guard.address: {folder} has no fast tokenizer, and only one of those "
                "splits a long text into windows. Add its tokenizer.json."
            )
        if missing := sorted(loading["missing_keys"]):  # transformers has drawn random values
            raise SettingsError(f"curation.guard.address: {folder} lacks the tensors {missing[:3]}")
        self._model: Any = model.eval().to(self._device)
        labels = model.config.id2label
        self._labels = [str(labels[place]) for place in range(model.config.num_labels)]
        self._is_multi = model.config.problem_type == MULTI_LABEL
        self._harmful = harmful_labels(self._labels, folder, is_multi=self._is_multi)
        longest = getattr(model.config, "max_position_embeddings", MAX_WINDOW) - 2
        self._window = min(int(self._tokenizer.model_max_length), longest, MAX_WINDOW)
        # RoBERTa's positions begin at 2, hence the difference.

    def rate(self, chats: Sequence[Sequence[Message]]) -> list[Rating]:
        """Rate the turns of every chat."""
        windows = [
            (place, window)
            for place, chat in enumerate(chats)
            for message in chat
            if message.content.strip()
            for window in self._windows(message.content)
        ]
        windows.sort(key=lambda pair: len(pair[1]))  # less padding
        size = BATCH if self._tokenizer.pad_token_id is not None else 1
        worst: dict[int, tuple[float, str]] = {}
        for start in range(0, len(windows), size):
            batch = windows[start : start + size]
            scores = self._scores([window for _, window in batch])
            for (place, _), score in zip(batch, scores, strict=True):
                worst[place] = max(worst.get(place, score), score, key=_rank)
        return [
            _rating(*worst[place]) if place in worst else Rating(None, "there is no text to rate")
            for place in range(len(chats))
        ]

    def _windows(self, text: str) -> list[list[int]]:
        result = self._tokenizer(
            text,
            truncation=True,
            max_length=self._window,
            stride=min(OVERLAP, self._window // 4),
            return_overflowing_tokens=True,
        )
        return list(result["input_ids"])

    @torch.inference_mode()
    def _scores(self, windows: Sequence[list[int]]) -> list[tuple[float, str]]:
        """Return the score of harm of every window, and the likeliest harmful label."""
        padded = self._tokenizer.pad({"input_ids": windows}, return_tensors="pt", padding=True)
        logits = self._model(**padded.to(self._device)).logits.float().cpu()
        chances = logits.sigmoid() if self._is_multi else logits.softmax(-1)
        harmful = chances[:, self._harmful]
        total = harmful.amax(-1) if self._is_multi else harmful.sum(-1)
        names = [self._labels[self._harmful[place]] for place in harmful.argmax(-1).tolist()]
        return list(zip(total.tolist(), names, strict=True))


def harmful_labels(labels: Sequence[str], folder: Path, *, is_multi: bool) -> list[int]:
    """Return the labels that say harmful: all but those that say harmless.

    Raises:
        SettingsError: every label says harmless; or, of labels that exclude each other, none does,
            so that nothing says which text is harmless.
    """
    harmful = [
        place
        for place, label in enumerate(labels)
        if "".join(filter(str.isalnum, label.lower())) not in HARMLESS
    ]
    if not harmful or (len(harmful) == len(labels) and not is_multi):
        raise SettingsError(
            f"curation.guard.address: the labels of {folder} are {', '.join(labels)}. Name the one "
            "of harmless texts 'safe' in id2label of its config.json, and no label of harmful ones."
        )
    return harmful


def _rank(score: tuple[float, str]) -> float:
    """Order scores; one that is no number is the worst."""
    return math.inf if math.isnan(score[0]) else score[0]


def _rating(score: float, label: str) -> Rating:
    if math.isnan(score):
        return Rating(None, "the classifier's score is not a number")
    return Rating(score >= THRESHOLD, f"{label} {score:.2f}, bound {THRESHOLD:.2f}")
