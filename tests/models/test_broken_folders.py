"""What a model folder makes us execute or allocate is refused at its door, in one line."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from data_schemas.artifacts import Execution, StoreRef
from tasks.errors import SettingsError
from tasks.models.model_folder import check_model_folder
from tasks.stages.foundation import ingest_base
from tasks.store.interface import store_at

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
TEMPLATE, SETTINGS = "chat_template.jinja", "tokenizer_config.json"
NESTED = "[" * 20_000


@pytest.fixture
def copy(tiny_moe, tmp_path):
    return shutil.copytree(tiny_moe, tmp_path / "model")


def edited(file: str, **changes: object) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        found = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(found | changes))

    return edit


def written(file: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / file).write_text(text)


def twice(folder: Path) -> None:
    text = (folder / CONFIG).read_text().strip()
    (folder / CONFIG).write_text(text[:-1] + ', "vocab_size": 4}')


def pipe(file: str) -> Callable[[Path], object]:
    def replace(folder: Path) -> None:
        (folder / file).unlink()
        os.mkfifo(folder / file)

    return replace


def sparse(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 200 * 2**30)


def expanding(folder: Path) -> None:
    found = json.loads((folder / TOKENIZER).read_text())
    found["normalizer"] = {
        "type": "Replace",
        "pattern": {"Regex": "(w|W|h|e|t|s| |n|o|p|l|u|\\?|i|a)*!"},
        "content": "",
    }
    (folder / TOKENIZER).write_text(json.dumps(found))


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "template: syntax": (written(TEMPLATE, "{% for m in messages %}{{ m }"), "line 1: "),
    "template: endless": (
        written(
            TEMPLATE,
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        ),
        "more than 10 s of processor time",
    ),
    "template: as large as memory": (
        written(TEMPLATE, "{{ 'a' * 10 ** 11 }}"),
        "chat template: MemoryError",
    ),
    "template: larger than any prompt": (
        written(TEMPLATE, "{{ messages[0].content }}{{ 'a' * 1000000 }}"),
        "a question of 1100 characters becomes 1001100",
    ),
    "template: refuses": (
        written(TEMPLATE, "{{ raise_exception('no user here') }}"),
        "no user here",
    ),
    "template: without the question": (
        written(TEMPLATE, "{{ messages[0].text }}"),
        "does not contain the question",
    ),
    "template: leaves the sandbox": (
        written(TEMPLATE, "{{ ''.__class__.__mro__[1].__subclasses__() }}"),
        "SecurityError",
    ),
    "template: no UTF-8": (
        lambda folder: (folder / TEMPLATE).write_bytes(b"\xff\xfe{"),
        "UnicodeDecodeError",
    ),
    "tokenizer: no model": (written(TOKENIZER, "{}"), r"tokenizer\.json: "),
    "tokenizer: vocabulary of texts": (
        edited(TOKENIZER, model={"type": "BPE", "vocab": {"a": "b"}, "merges": []}),
        r"tokenizer\.json: ",
    ),
    "tokenizer: token beyond the model": (
        edited(TOKENIZER, added_tokens=[{"id": 4_000_000_000, "content": "x"}]),
        r"tokenizer",
    ),
    "tokenizer: nested": (written(TOKENIZER, NESTED), r"tokenizer\.json is nested too deeply"),
    "tokenizer: a pipe": (pipe(TOKENIZER), r"tokenizer\.json is no regular file"),
    "tokenizer settings: a key twice": (
        written(SETTINGS, '{"eos_token": "a", "eos_token": "b"}'),
        r"tokenizer_config\.json .* the key 'eos_token' is given twice",
    ),
    "config: more experts per token than experts": (
        edited(CONFIG, num_experts_per_tok=9),
        "num_experts_per_tok 9, but 8 experts",
    ),
    "config: no expert per token": (
        edited(CONFIG, num_experts_per_tok=0),
        "num_experts_per_tok 0, but 8 experts",
    ),
    "config: a key twice": (twice, "the key 'vocab_size' is given twice"),
    "config: two names of one value": (
        edited(CONFIG, num_experts=16),
        "num_experts 16 and num_local_experts 8, which name the same value",
    ),
    "config: two dtypes": (
        edited(CONFIG, dtype="float32", torch_dtype="bfloat16"),
        "dtype 'float32' and torch_dtype 'bfloat16'",
    ),
    "config: a million layers": (
        edited(CONFIG, num_hidden_layers=10**6),
        "num_hidden_layers 1000000; it must be a whole number from 1 to 4096",
    ),
    "config: more layers than tensors": (
        edited(CONFIG, num_hidden_layers=4000),
        "num_hidden_layers 4000, but the weights are",
    ),
    "config: a vocabulary of 10**12": (
        edited(CONFIG, vocab_size=10**12),
        "vocab_size 1000000000000; it must be",
    ),
    "config: positions of 10**15": (
        edited(CONFIG, max_position_embeddings=10**15),
        "max_position_embeddings 1000000000000000; it must be",
    ),
    "config: no heads": (edited(CONFIG, num_attention_heads=0), "num_attention_heads 0; it must"),
    "config: negative": (edited(CONFIG, hidden_size=-32), "hidden_size -32; it must"),
    "config: a truth": (edited(CONFIG, num_experts=True), "num_experts True; it must"),
    "config: a fraction": (edited(CONFIG, num_experts=8.5), "num_experts 8.5; it must"),
    "config: NaN": (edited(CONFIG, rms_norm_eps=float("nan")), "rms_norm_eps nan; it must be a"),
    "config: nested": (written(CONFIG, NESTED), r"config\.json is nested too deeply"),
    "config: a list": (written(CONFIG, "[]"), r"config\.json cannot be read: it is no JSON object"),
    "config: a pipe": (pipe(CONFIG), r"config\.json is no regular file"),
    "config: of 17 MB": (written(CONFIG, " " * 17 * 2**20), r"has 17825792 bytes, more than"),
    "generation config: damaged": (
        written("generation_config.json", "{"),
        r"generation_config\.json cannot be read",
    ),
    "weights: a pipe": (pipe("model.safetensors"), r"model\.safetensors is no regular file"),
    "weights: never written": (sparse, "less than a hundredth was ever written"),
}


ENDLESS = pytest.param("template: endless", marks=pytest.mark.slow)  # 10 s of processor time


@pytest.mark.slow
@pytest.mark.parametrize("fault", [ENDLESS, *sorted(BROKEN.keys() - {*ENDLESS.values})])
def test_a_broken_model_folder_is_refused_in_one_line_with_its_file(copy, fault):
    breaks, message = BROKEN[fault]
    breaks(copy)

    with pytest.raises(SettingsError, match=message) as refused:
        check_model_folder(copy)

    assert str(copy) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 700


def test_weights_that_are_no_numbers_are_refused_before_anything_is_committed(
    copy, tmp_path, migrated
):
    tensors = load_file(copy / "model.safetensors")
    tensors["model.norm.weight"][3] = torch.nan
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    shutil.copy(migrated, folder / "mlflow.db")
    store = StoreRef(uri=str(folder), id=identity, tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")

    with pytest.raises(SettingsError, match=r"model\.norm\.weight of .* has 1 of 32 values"):
        ingest_base(
            path=str(copy), name="base", store=store, execution=Execution(id="e", started=0.0)
        )

    assert not list(folder.glob("statements/*"))
    assert not list(folder.glob("objects/*"))
