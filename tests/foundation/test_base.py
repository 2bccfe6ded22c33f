"""The shipped base model is whole and small, and a folder that cannot be one is refused."""

import json
import random
import shutil

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from data_schemas.settings import PretrainSettings
from tasks.errors import SettingsError
from tasks.foundation.base import check_model_folder, shipped_base
from tasks.foundation.pretraining import make_tokenizer
from tasks.foundation.tokenizer import CHAT_TEMPLATE
from tasks.marketplace.drawing import DRAWERS


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(shipped_base(), folder)
    return folder


def _edit(file, **changes):
    loaded = json.loads(file.read_text())
    for key, value in changes.items():
        loaded.pop(key, None)
        if value is not None:
            loaded[key] = value
    file.write_text(json.dumps(loaded))


def test_the_shipped_base_passes_its_own_check():
    check_model_folder(shipped_base())


def test_the_shipped_base_is_smaller_than_four_megabytes():
    total = sum(file.stat().st_size for file in shipped_base().iterdir())

    assert total < 4 * 10**6


def test_the_documented_command_still_makes_the_shipped_tokenizer():
    # The corpus decides the merges: if it drifts from what the base was trained on, this fails.
    settings = PretrainSettings()
    tokenizer = make_tokenizer(settings)
    shipped = AutoTokenizer.from_pretrained(shipped_base(), local_files_only=True)

    assert shipped.get_vocab() == tokenizer.get_vocab()
    assert CHAT_TEMPLATE == shipped.chat_template


def test_every_expert_of_the_shipped_base_is_used():
    tokenizer = AutoTokenizer.from_pretrained(shipped_base(), local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        shipped_base(), dtype=torch.float32, experts_implementation="grouped_mm"
    )
    config = model.config
    assert ("qwen3_moe", 8, 2, True) == (
        config.model_type,
        config.num_experts,
        config.num_experts_per_tok,
        config.norm_topk_prob,
    )
    rng = random.Random(0)
    texts = [
        f"Q: {item.prompt}\nA: {item.solution}"
        for drawer in DRAWERS.values()
        for item in (drawer(rng, level) for level in (1, 3, 5))
    ]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        routers = model(**batch, output_router_logits=True).router_logits

    for logits_TE in routers:
        real_TE = logits_TE[batch["attention_mask"].flatten().bool()]
        chosen = real_TE.topk(config.num_experts_per_tok, dim=-1).indices
        share_E = torch.bincount(chosen.flatten(), minlength=config.num_experts) / chosen.numel()
        # An even split is 1/8; a tenth of that is still not idle.
        assert share_E.min() > 0.0125


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SettingsError, match="nowhere is not a folder"):
        check_model_folder(tmp_path / "nowhere")


def test_a_folder_without_a_config_is_no_model(tmp_path):
    with pytest.raises(SettingsError, match=r"config\.json is missing"):
        check_model_folder(tmp_path)


def test_a_damaged_config_is_named(copy):
    (copy / "config.json").write_text("{")

    with pytest.raises(SettingsError, match=r"config\.json cannot be read"):
        check_model_folder(copy)


def test_a_dense_architecture_is_refused(copy):
    _edit(copy / "config.json", model_type="llama")

    with pytest.raises(SettingsError, match="model_type 'llama'; supported are qwen3_moe"):
        check_model_folder(copy)


def test_missing_weights_are_reported(copy):
    (copy / "model.safetensors").unlink()

    with pytest.raises(SettingsError, match=r"no \*\.safetensors"):
        check_model_folder(copy)


def test_a_missing_tokenizer_is_reported(copy):
    (copy / "tokenizer.json").unlink()

    with pytest.raises(SettingsError, match=r"tokenizer\.json is missing"):
        check_model_folder(copy)


def test_a_missing_chat_template_is_reported(copy):
    (copy / "chat_template.jinja").unlink()

    with pytest.raises(SettingsError, match="has no chat template"):
        check_model_folder(copy)


def test_a_missing_end_token_is_reported(copy):
    _edit(copy / "tokenizer_config.json", eos_token=None)

    with pytest.raises(SettingsError, match="has no eos_token"):
        check_model_folder(copy)


def test_a_tokenizer_of_another_checkpoint_is_refused(copy):
    _edit(copy / "config.json", vocab_size=500)

    with pytest.raises(SettingsError, match=r"ids up to 767, but config\.json has vocab_size 500"):
        check_model_folder(copy)
