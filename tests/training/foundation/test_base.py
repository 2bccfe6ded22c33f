"""The shipped base model is complete and small, and weights that are not finite are refused."""

import random
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from data_schemas.settings import PretrainSettings
from tasks.curation.marketplace.drawing import DRAWERS
from tasks.errors import SettingsError
from tasks.training.foundation.base import check_finite, shipped_base
from tasks.training.foundation.pretraining import make_tokenizer


def test_the_shipped_base_is_smaller_than_four_megabytes():
    total = sum(file.stat().st_size for file in shipped_base().iterdir())

    assert total < 4 * 10**6


@pytest.mark.slow
def test_the_documented_command_still_makes_the_shipped_tokenizer():
    # The corpus decides the merges: if it drifts from what the base was trained on, this fails.
    settings = PretrainSettings()
    tokenizer = make_tokenizer(settings)
    shipped = AutoTokenizer.from_pretrained(shipped_base(), local_files_only=True)

    assert shipped.get_vocab() == tokenizer.get_vocab()
    assert shipped.chat_template == tokenizer.chat_template


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


def test_weights_that_are_not_finite_are_refused(tmp_path):
    check_finite(shipped_base())
    copy = tmp_path / "model"
    shutil.copytree(shipped_base(), copy)
    tensors = load_file(copy / "model.safetensors")
    tensors["model.norm.weight"][7] = torch.nan
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(SettingsError, match=r"model\.norm\.weight of .* has 1 of 128 values"):
        check_finite(copy)
