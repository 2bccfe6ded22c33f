"""A text encoder from a folder: a Hugging Face checkpoint, or one of sentence-transformers.

A vector is pooled from the hidden states of the last layer: their mean, or what the pooling of
sentence-transformers in the folder says (mean, first or last token). The layers that such a folder
may have behind that (a linear map) and its prompts are not supported and refused by name.
A text longer than the encoder reads is cut: its beginning says what it is about.
"""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from tasks.curation.meaning.protocol import Vectors, unit
from tasks.engines.driver import device_here
from tasks.errors import SettingsError

MAX_TOKENS = 512
"""Tokens of a text, for encoders that read more."""
BATCH = 32
SETTING = "curation.encoder.address"
_SUPPORTED = ("Transformer", "Pooling", "Normalize")


class Pooling(StrEnum):
    """How one vector is made of the hidden states of a text."""

    MEAN = "pooling_mode_mean_tokens"
    FIRST = "pooling_mode_cls_token"
    LAST = "pooling_mode_lasttoken"


class FolderEncoder:
    """An Encoder on a model of transformers, on this process's GPU if there is one."""

    def __init__(self, folder: Path) -> None:
        """Load it.

        Raises:
            SettingsError: it is not loadable, lacks weights, or does with hidden states what is
                not supported; or the GPU cannot be used.
        """
        self._device = device_here()
        self._pooling = pooling_of(folder)
        transformers_logging.disable_progress_bar()
        try:
            model, loading = AutoModel.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise SettingsError(
                f"{SETTING}: {folder} is no loadable text encoder: {error}. Give a folder with "
                "config.json, *.safetensors and a tokenizer."
            ) from error
        # Some encoders come without the pooler, which is not used here.
        if missing := sorted(name for name in loading["missing_keys"] if "pooler" not in name):
            raise SettingsError(f"{SETTING}: {folder} lacks the tensors {missing[:3]}")
        self._model: Any = model.float().eval().to(self._device)
        longest = getattr(model.config, "max_position_embeddings", MAX_TOKENS) - 2
        # RoBERTa's positions begin at 2, hence the difference.
        self._longest = min(int(self._tokenizer.model_max_length), longest, MAX_TOKENS)
        self._tokenizer.padding_side = "right"
        self._size = BATCH if self._tokenizer.pad_token_id is not None else 1

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode texts, those of about one length together."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors = np.zeros((len(texts), int(self._model.config.hidden_size)), np.float32)
        for start in range(0, len(order), self._size):
            places = order[start : start + self._size]
            vectors[places] = self._pooled([texts[place] for place in places])
        return unit(vectors)

    @torch.inference_mode()
    def _pooled(self, texts: Sequence[str]) -> Vectors:
        inputs = self._tokenizer(
            list(texts),
            padding=self._size > 1,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        states_NTH = self._model(**inputs).last_hidden_state
        mask_NT = inputs["attention_mask"]
        match self._pooling:
            case Pooling.MEAN:
                weights_NT = mask_NT / mask_NT.sum(1, keepdim=True).clamp(min=1)
                pooled_NH = torch.einsum("nth,nt->nh", states_NTH, weights_NT.to(states_NTH.dtype))
            case Pooling.FIRST:
                pooled_NH = states_NTH[:, 0]
            case Pooling.LAST:
                last_N = mask_NT.sum(1).clamp(min=1) - 1
                pooled_NH = states_NTH[torch.arange(len(texts), device=last_N.device), last_N]
        return pooled_NH.cpu().numpy()


def pooling_of(folder: Path) -> Pooling:
    """Return how a folder wants hidden states pooled; the mean, if it does not say.

    Raises:
        SettingsError: it wants something else, or more than that.
    """
    modules = folder / "modules.json"
    if not modules.exists():
        return Pooling.MEAN
    try:
        layers = json.loads(modules.read_text())
        kinds = {one["type"].rpartition(".")[2]: one["path"] for one in layers}
        settings = json.loads((folder / kinds.get("Pooling", "") / "config.json").read_text())
        modes = [name for name, value in settings.items() if "pooling_mode_" in name and value]
        prompts = _prompts(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{SETTING}: {modules} cannot be read: {error!r}") from error
    if more := [kind for kind in kinds if kind not in _SUPPORTED]:
        raise SettingsError(f"{SETTING}: {folder} has a layer {more[0]}. {_SERVE}")
    if len(modes) != 1 or modes[0] not in list(Pooling):
        raise SettingsError(f"{SETTING}: {folder} pools by {' and '.join(modes)}. {_SERVE}")
    if prompts:
        raise SettingsError(f"{SETTING}: {folder} prepends prompts to texts. {_SERVE}")
    return Pooling(modes[0])


_SERVE = "Serve it at an endpoint and set curation.encoder.kind to 'http'."


def _prompts(folder: Path) -> bool:
    """Return whether a prompt is prepended to every text."""
    path = folder / "config_sentence_transformers.json"
    return path.exists() and bool(json.loads(path.read_text()).get("default_prompt_name"))
