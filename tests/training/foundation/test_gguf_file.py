"""The conversion of a GGUF file: refusals; and, with SmolLM2 from `make real`, its logits."""

import os
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from data_schemas.rows import Message, Role
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.errors import SettingsError
from tasks.models.model_folder import check_model_folder
from tasks.training.foundation.gguf_file import convert, find_gguf

REAL = Path(os.environ.get("EACHPROMPT_REAL", "runs/real"))
"""Where `make real` has put the packages and the model."""


def test_a_folder_has_to_hold_one_file(tmp_path):
    with pytest.raises(SettingsError, match=r"one \*\.gguf file, found none"):
        find_gguf(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.gguf").touch()
    with pytest.raises(SettingsError, match=r"found a\.gguf, b\.gguf; name the file"):
        find_gguf(tmp_path)

    assert tmp_path / "b.gguf" == find_gguf(tmp_path / "b.gguf")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_converted_model_has_the_logits_of_the_quantised_one(tmp_path):
    pytest.importorskip("gguf", reason="run with PYTHONPATH=.:runs/real/site after make real")
    source = find_gguf(REAL / "site")
    convert(source, tmp_path)
    check_model_folder(tmp_path)
    tokens = render_prompt(
        load_tokenizer(tmp_path), [Message(role=Role.USER, content="What is 17 + 25?")]
    )
    theirs = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    turn = [{"role": "user", "content": "What is 17 + 25?"}]
    text = theirs.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
    assert theirs(text, add_special_tokens=False)["input_ids"] == tokens.tolist()
    rows = torch.from_numpy(tokens).long()[None]
    ours = AutoModelForCausalLM.from_pretrained(tmp_path)
    # Their matrix products unpack the blocks of the file while they compute.
    packed = AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        quantization_config=GgufConfig(gguf_file=source.name),
        dtype=torch.float32,
    )
    with torch.inference_mode():
        difference = ours(rows).logits - packed(rows).logits

    assert torch.float32 == ours.dtype
    assert float(difference.abs().max()) < 1e-3
    best = ours.generate(rows, max_new_tokens=24, do_sample=False, pad_token_id=2)
    # Language, if not arithmetic: the sum that it names is 32.
    assert theirs.decode(best[0, rows.shape[1] :]).startswith("17 + 25 = ")
