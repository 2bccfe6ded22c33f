"""Folders of every family with one legal variant or one contradiction: opened alike, or refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from data_schemas.rollouts import StopReason
from tasks.engines.chat import ends_of, load_tokenizer, opening_of
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.engines.trainer_megatron.geometry import Geometry, read_geometry
from tasks.errors import SettingsError
from tasks.models.architectures import FAMILIES as READ
from tasks.models.architectures import architecture_of
from tasks.models.model_folder import check_model_folder
from tasks.models.weights import Weights
from tests.engines.families import COMMON, CONFIGS, ROUTED, write_family, write_model

FILE = "model.safetensors"
DENSE = {
    "qwen2": {"model_type": "qwen2", "rope_theta": 1e6, "use_sliding_window": False},
    "qwen3": {"model_type": "qwen3", "head_dim": 16, "rope_theta": 1e6},
}
FAMILIES = [*DENSE, *CONFIGS]
THINKING = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}"""
"""As R1's distillations and Qwen3-Thinking: the prompt opens the thought."""
Edit = Callable[[Path], object]


def write(name: str, tokenizer: Path, folder: Path) -> Path:
    if name in DENSE:
        return write_model(COMMON | DENSE[name], tokenizer, folder)
    return write_family(name, tokenizer, folder)


def edited(file: str, **changes: object) -> Edit:
    def edit(folder: Path) -> None:
        values = json.loads((folder / file).read_text())
        kept = {name: value for name, value in (values | changes).items() if value != "absent"}
        (folder / file).write_text(json.dumps(kept))

    return edit


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Edit:
    def edit(folder: Path) -> None:
        values = load_file(folder / FILE)
        change(values)
        save_file(values, folder / FILE, metadata={"format": "pt"})

    return edit


def fused(folder: Path) -> None:
    """Store experts as transformers has them in memory."""
    config = (folder / "config.json").read_text()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    model.save_pretrained(folder, save_original_format=False)
    (folder / "config.json").write_text(config)


def sharded(folder: Path) -> None:
    values = load_file(folder / FILE)
    (folder / FILE).unlink()
    names = sorted(values)
    files = {f"model-0000{part}-of-00002.safetensors": names[part - 1 :: 2] for part in (1, 2)}
    for file, own in files.items():
        save_file({name: values[name] for name in own}, folder / file, metadata={"format": "pt"})
    index = {
        "metadata": {},
        "weight_map": {name: file for file, own in files.items() for name in own},
    }
    (folder / f"{FILE}.index.json").write_text(json.dumps(index))


def index_without_metadata(folder: Path) -> None:
    sharded(folder)
    edited(f"{FILE}.index.json", metadata="absent")(folder)


def both_dtypes(folder: Path) -> None:
    edited("config.json", dtype="float32", torch_dtype="float32")(folder)


def head_again(folder: Path) -> None:
    """Write the head of a tied model once more, as some checkpoints have it."""
    tensors(lambda own: own.update({"lm_head.weight": own["model.embed_tokens.weight"].clone()}))(
        folder
    )


def template_in_settings(folder: Path) -> None:
    text = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    edited("tokenizer_config.json", chat_template=text)(folder)


def several_ends(folder: Path) -> None:
    listed = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    ends = [one["id"] for one in listed if one["special"]]
    edited("generation_config.json", eos_token_id=ends)(folder)


LEGAL: dict[str, Edit] = {
    "as it is": lambda folder: None,
    "sharded": sharded,
    "both names of the dtype": both_dtypes,
    "template in the tokenizer's settings": template_in_settings,
    "a prompt that opens the thought": lambda folder: (folder / "chat_template.jinja").write_text(
        THINKING
    ),
    "several ends": several_ends,
    "no settings of generation": lambda folder: (folder / "generation_config.json").unlink(),
}
OF_EXPERTS: dict[str, Edit] = {"fused experts": fused}
OF_TIED: dict[str, Edit] = {"the head again": head_again}
NO_FUSED = ("ling lite", "ling mini 2")
NOT_EMBEDDED = ("deepseek_v3",)
"""Refused by name by the embedded engine: it has no multi-head latent attention."""

BROKEN: dict[str, tuple[Edit, str]] = {
    "two dtypes": (edited("config.json", dtype="float32", torch_dtype="bfloat16"), "same value"),
    "two bases of rotation": (
        edited("config.json", rope_theta=5e5, rope_parameters={"rope_theta": 1e4}),
        "same value",
    ),
    "more layers": (edited("config.json", num_hidden_layers=4), "missing|not part of"),
    "fewer layers": (edited("config.json", num_hidden_layers=2), "not part of|no layer of multi"),
    "an index without metadata": (index_without_metadata, "has no metadata"),
    "a larger hidden size": (edited("config.json", hidden_size=128), "one checkpoint"),
    "a smaller vocabulary": (edited("config.json", vocab_size=128), "token ids up to"),
    "an end beyond the vocabulary": (
        edited("generation_config.json", eos_token_id=[3, 4000]),
        "eos_token_id",
    ),
    "a tensor less": (tensors(lambda own: own.pop("model.norm.weight")), "norm.*is missing"),
    "a tensor more": (
        tensors(lambda own: own.update({"model.extra.weight": torch.ones(3)})),
        "model.extra.weight .*not part",
    ),
    "quantised": (
        tensors(lambda own: own.update({"model.norm.weight": torch.ones(64, dtype=torch.int8)})),
        "before quantisation",
    ),
    "another family": (edited("config.json", model_type="gemma2"), "supported are"),
    "no end": (edited("tokenizer_config.json", eos_token="absent"), "no eos_token"),
}


def geometry(folder: Path) -> Geometry | str:
    """Return what Megatron's reader makes of a folder, or why it refuses it."""
    try:
        return read_geometry(folder)
    except SettingsError as error:
        return str(error).partition("config.json: ")[2] or str(error)


def logits(folder: Path) -> torch.Tensor:
    with torch.no_grad():
        return load_model(folder)(torch.arange(5, 25)[None]).logits


def check_variant(name: str, edit: Edit, tokenizer: Path, folder: Path) -> None:
    write(name, tokenizer, folder)
    expected, read = logits(folder), geometry(folder)
    with Weights(folder) as weights:
        names = {*weights.file_of}
    edit(folder)

    check_model_folder(folder)
    torch.testing.assert_close(expected, logits(folder))
    assert read == geometry(folder)
    with Weights(folder) as weights:
        assert names <= {*weights.file_of}
    opened = load_tokenizer(folder)
    is_thinking = "<think>" in opened.apply_chat_template(
        [{"role": "user", "content": "?"}], add_generation_prompt=True, tokenize=False
    )
    assert is_thinking == ("<think>" in opening_of(opened))


def variants() -> list[tuple[str, str, Edit]]:
    return [
        (name, variant, edit)
        for name in FAMILIES
        for variant, edit in {
            **LEGAL,
            **(OF_EXPERTS if name in ROUTED and name not in NO_FUSED else {}),
            **(OF_TIED if name == "llama" else {}),
        }.items()
    ]


@pytest.mark.parametrize(
    ("name", "variant"),
    [("qwen3", "a prompt that opens the thought"), ("mixtral", "fused experts")],
)
def test_a_legal_variant_means_the_same_to_every_reader(
    tiny_moe: Path, tmp_path: Path, name: str, variant: str
):
    check_variant(name, (LEGAL | OF_EXPERTS)[variant], tiny_moe, tmp_path / "m")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant", "edit"), variants())
def test_every_legal_variant_of_every_family_means_the_same(
    tiny_moe: Path, tmp_path: Path, name: str, variant: str, edit: Edit
):
    check_variant(name, edit, tiny_moe, tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "fault"), [("qwen2", "two bases of rotation"), ("glm4_moe", "fewer layers")]
)
def test_a_contradiction_is_refused(tiny_moe: Path, tmp_path: Path, name: str, fault: str):
    check_fault(name, fault, tiny_moe, tmp_path / "m")


@pytest.mark.slow
@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_contradiction_of_every_family_is_refused(
    tiny_moe: Path, tmp_path: Path, name: str, fault: str
):
    check_fault(name, fault, tiny_moe, tmp_path / "m")


def check_fault(name: str, fault: str, tokenizer: Path, folder: Path) -> None:
    write(name, tokenizer, folder)
    edit, message = BROKEN[fault]
    edit(folder)
    with pytest.raises(SettingsError, match=message):
        check_model_folder(folder)


def check_export(name: str, tokenizer: Path, folder: Path) -> None:
    source = write(name, tokenizer, folder / "source")
    own = load_tokenizer(source).eos_token_id
    assert isinstance(own, int)
    prompt = np.arange(5, 12, dtype=np.int32)
    sampling = Sampling(max_new_tokens=24, temperature=0.0, seed=0, record_routes=False)
    first = next(iter(HFRolloutEngine(source).generate([Request("p", prompt, 1)], sampling)))
    # A token that the model does write in the middle, so that both have to stop at it.
    end = int(first.response_tokens[7])
    edited("generation_config.json", eos_token_id=[own, end])(source)

    out = folder / "out"
    out.mkdir()
    trainer = TorchTrainer(source)
    trainer.export(out)
    trainer.close()
    (rollout,) = HFRolloutEngine(source).generate([Request("p", prompt, 1)], sampling)
    model: Any = AutoModelForCausalLM.from_pretrained(out)
    result = model.generate(torch.tensor(prompt)[None], max_new_tokens=24, do_sample=False)
    written = result[0, len(prompt) :].tolist()

    assert StopReason.END is rollout.stop_reason
    assert rollout.response_tokens.tolist() == written
    assert end == written[-1]
    assert {own, end} <= {*ends_of(load_tokenizer(out))}
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["qwen3_moe mixed"])
def test_an_exported_model_writes_the_same_and_stops_in_transformers(
    tiny_moe: Path, tmp_path: Path, name: str
):
    check_export(name, tiny_moe, tmp_path / "m")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in NOT_EMBEDDED])
def test_an_exported_model_of_every_family_writes_the_same_and_stops(
    tiny_moe: Path, tmp_path: Path, name: str
):
    check_export(name, tiny_moe, tmp_path / "m")


IN_CLASSES = sorted(READ.keys() & set(CONFIG_MAPPING))
NEVER_MISSING = {"num_experts", "num_local_experts", "n_routed_experts", "num_nextn_predict_layers"}
"""Without them a folder has other weights than its config, which is refused."""


@pytest.mark.parametrize("family", IN_CLASSES)
def test_a_missing_key_has_the_default_of_the_class(family: str) -> None:
    values = CONFIG_MAPPING[family]().to_dict()
    whole = architecture_of(values)
    # The class of DeepSeek adds the size of a head, which attention by latents does not read.
    kept = NEVER_MISSING | ({"head_dim"} if family == "deepseek_v3" else set())

    differ = list[str]()
    for key in sorted(values.keys() - kept):
        try:
            read = architecture_of({name: one for name, one in values.items() if name != key})
        except SettingsError:
            continue
        if read != whole:
            differ.append(key)

    assert [] == differ


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "qwen2_moe"])
def test_layers_that_slide_by_their_type_are_seen_without_the_flag(family: str) -> None:
    values = CONFIG_MAPPING[family]().to_dict() | {"use_sliding_window": False}
    layers = values["num_hidden_layers"]

    for kind, slides in (("full_attention", False), ("sliding_attention", True)):
        types = [kind, *["full_attention"] * (layers - 1)]
        assert slides is architecture_of(values | {"layer_types": types}).window
