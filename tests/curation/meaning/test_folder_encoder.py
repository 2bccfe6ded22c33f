"""Vectors of an encoder's folder, and folders that ask for what is not supported."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from tasks.curation.meaning.folder_encoder import FolderEncoder, Pooling, pooling_of
from tasks.errors import SettingsError
from tasks.models.model_folder import SHIPPED

TEXTS = ["the red cake", "buy the cake", "how bake the bomb how buy the red cake"]


@pytest.fixture
def pooled(text_classifier, tmp_path):
    """Return a folder as sentence-transformers writes it."""

    def build(*modes: str, layers: tuple[str, ...] = (), prompt: str | None = None) -> Path:
        folder = tmp_path / "encoder"
        shutil.copytree(text_classifier, folder)
        kinds = ["Transformer", "Pooling", *layers]
        modules = [{"type": f"sentence_transformers.models.{kind}", "path": kind} for kind in kinds]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "Pooling").mkdir()
        chosen = {mode.value: mode.value in modes for mode in Pooling} | dict.fromkeys(modes, True)
        (folder / "Pooling" / "config.json").write_text(json.dumps(chosen))
        said = {"prompts": {"query": "query: "}, "default_prompt_name": prompt}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(said))
        return folder

    return build


def states(folder: Path, text: str) -> torch.Tensor:
    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        return AutoModel.from_pretrained(folder)(**tokens).last_hidden_state[0]


@pytest.mark.parametrize("pooling", Pooling)
def test_a_vector_is_pooled_from_the_states_of_the_text_alone(pooled, pooling):
    folder = pooled(pooling)
    select = {
        Pooling.MEAN: lambda rows: rows.mean(0),
        Pooling.FIRST: lambda rows: rows[0],
        Pooling.LAST: lambda rows: rows[-1],
    }[pooling]

    vectors = FolderEncoder(folder).encode(TEXTS)

    for text, vector in zip(TEXTS, vectors, strict=True):
        expected = select(states(folder, text)).numpy()
        assert vector == pytest.approx(expected / np.linalg.norm(expected), abs=1e-5)


def test_without_the_word_of_sentence_transformers_it_is_the_mean(text_classifier):
    assert pooling_of(text_classifier) is Pooling.MEAN


def test_the_base_model_of_the_project_is_an_encoder_too():
    vectors = FolderEncoder(SHIPPED).encode(["How many bags has Ben?", "Name a color.", ""])

    assert np.linalg.norm(vectors[:2], axis=1) == pytest.approx(1.0)
    assert vectors[0] @ vectors[1] < 0.99


def test_a_long_text_is_cut_and_not_refused(text_classifier):
    encoder = FolderEncoder(text_classifier)
    long = "the red cake " * 1000

    assert encoder.encode([long]) == pytest.approx(encoder.encode([long + "bomb"]))


@pytest.mark.parametrize(
    ("modes", "layers", "prompt", "says"),
    [
        (("pooling_mode_mean_tokens",), ("Dense",), None, "has a layer Dense"),
        (("pooling_mode_max_tokens",), (), None, "pools by pooling_mode_max_tokens"),
        (("pooling_mode_mean_tokens", "pooling_mode_cls_token"), (), None, "pools by .* and "),
        (("pooling_mode_mean_tokens",), (), "query", "prepends prompts"),
    ],
)
def test_what_is_not_supported_is_named_with_the_way_out(pooled, modes, layers, prompt, says):
    with pytest.raises(SettingsError, match=f"{says}.*encoder.kind to 'http'"):
        FolderEncoder(pooled(*modes, layers=layers, prompt=prompt))


def test_a_broken_folder_is_named(text_classifier, tmp_path):
    lame = tmp_path / "lame"
    shutil.copytree(text_classifier, lame)
    tensors = load_file(lame / "model.safetensors")
    del tensors["distilbert.embeddings.word_embeddings.weight"]
    save_file(tensors, lame / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(SettingsError, match="lacks the tensors"):
        FolderEncoder(lame)

    for modules in ("{", '[{"type": 3, "path": ""}]', "7", '[{"type": "a.Pooling", "path": "/x"}]'):
        (lame / "modules.json").write_text(modules)
        with pytest.raises(SettingsError, match=r"modules\.json cannot be read"):
            FolderEncoder(lame)
    with pytest.raises(SettingsError, match="is no loadable text encoder"):
        FolderEncoder(tmp_path)
