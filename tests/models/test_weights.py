"""A model directory is refused unless its weights are complete and those of its config."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tasks.engines.chat import ends_of, load_tokenizer
from tasks.errors import DataError
from tasks.models.weights import (
    INDEX_FILE,
    SINGLE_FILE,
    Weights,
    check_tensors,
    separate_experts,
    write_ends,
)
from tasks.training.foundation.base import shipped_base

EXPERT = "model.layers.1.mlp.experts.3.up_proj.weight"
NORM = "model.norm.weight"


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(shipped_base(), folder)
    return folder


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    """Change the tensors of a model directory."""
    tensors = load_file(folder / SINGLE_FILE)
    change(tensors)
    save_file(tensors, folder / SINGLE_FILE, metadata={"format": "pt"})


def shard(folder: Path) -> dict[str, str]:
    """Distribute the weights of a directory over two files with an index."""
    tensors = load_file(folder / SINGLE_FILE)
    (folder / SINGLE_FILE).unlink()
    file_of = {name: f"model-{1 + i % 2:05}-of-00002.safetensors" for i, name in enumerate(tensors)}
    for file in set(file_of.values()):
        part = {name: tensors[name] for name in tensors if file_of[name] == file}
        save_file(part, folder / file, metadata={"format": "pt"})
    write_index(folder, file_of)
    return file_of


def write_index(folder: Path, file_of: dict[str, str]) -> None:
    (folder / INDEX_FILE).write_text(json.dumps({"metadata": {}, "weight_map": file_of}))


def edit_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_one_file_and_several_with_an_index_are_both_complete(copy):
    check_tensors(copy)
    shard(copy)
    check_tensors(copy)


def test_a_head_that_is_written_although_it_is_tied_is_accepted(copy):
    rewrite(copy, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].clone()}))

    check_tensors(copy)


@pytest.mark.parametrize("name", [EXPERT, NORM, "model.embed_tokens.weight"])
def test_a_missing_tensor_is_named(copy, name):
    rewrite(copy, lambda tensors: tensors.pop(name))

    with pytest.raises(DataError, match=rf"tensor {name} of .*/model is missing"):
        check_tensors(copy)


def test_a_head_is_missing_where_it_is_not_tied(copy):
    edit_config(copy, tie_word_embeddings=False)

    with pytest.raises(DataError, match=r"tensor lm_head\.weight of .* is missing"):
        check_tensors(copy)


def test_a_tensor_that_the_model_does_not_have_is_named(copy):
    rewrite(copy, lambda tensors: tensors.update(adapter=torch.zeros(2)))

    with pytest.raises(DataError, match=r"tensor adapter of .* is not part of the model"):
        check_tensors(copy)


@pytest.mark.parametrize(("ours", "theirs"), [("down_proj", "w2"), ("model.", "language_model.")])
def test_weights_under_other_names_are_another_layout_and_no_part_of_a_download(copy, ours, theirs):
    file = copy / "model.safetensors"
    renamed = {name.replace(ours, theirs): one for name, one in load_file(file).items()}
    save_file(renamed, file, metadata={"format": "pt"})

    with pytest.raises(DataError, match="another layout, or another model") as refusal:
        check_tensors(copy)

    assert theirs in str(refusal.value)
    assert "download" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("pytorch_model.bin", "save_pretrained"),
        ("q4.gguf", "made from"),
        ("__0_0.distcp", "merge-weights"),
        ("global_step10", "zero_to_fp32"),
        ("weights.npz", "MLX"),
    ],
)
def test_weights_in_another_form_are_named_with_what_to_do(copy, name, advice):
    (copy / "model.safetensors").rename(copy / name)

    with pytest.raises(DataError, match=rf"no \*.safetensors weights. {name}.*{advice}"):
        check_tensors(copy)


@pytest.mark.parametrize("name", [EXPERT, NORM])
def test_a_tensor_of_another_shape_is_named_with_both(copy, name):
    rewrite(copy, lambda tensors: tensors.update({name: tensors[name][:10].clone()}))

    with pytest.raises(DataError, match=rf"{name} of .* is \[10.*, but \[\d+.* by its config"):
        check_tensors(copy)


def test_quantised_weights_are_refused(copy):
    rewrite(copy, lambda t: t.update({EXPERT: t[EXPERT].to(torch.float8_e4m3fn)}))

    with pytest.raises(DataError, match=rf"{EXPERT} of .* is F8_E4M3; engines read F64"):
        check_tensors(copy)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_download_that_was_cut_off_is_named(copy, share):
    path = copy / SINGLE_FILE
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])

    with pytest.raises(DataError, match=r"model\.safetensors is not a complete safetensors file"):
        check_tensors(copy)


def test_a_missing_file_of_the_index_is_named(copy):
    file_of = shard(copy)
    (copy / file_of[NORM]).unlink()

    with pytest.raises(DataError, match=rf"{file_of[NORM]} is missing"):
        check_tensors(copy)


def test_an_index_that_disagrees_with_the_files_is_refused(copy):
    file_of = shard(copy)
    (other,) = set(file_of.values()) - {file_of[NORM]}
    write_index(copy, file_of | {NORM: other})

    with pytest.raises(DataError, match=rf"{NORM} is in {file_of[NORM]}, but in {other} by"):
        check_tensors(copy)


def test_an_index_that_leads_out_of_the_directory_is_refused(copy):
    shutil.copyfile(copy / SINGLE_FILE, copy.parent / SINGLE_FILE)
    file_of = dict.fromkeys(load_file(copy / SINGLE_FILE), f"../{SINGLE_FILE}")
    (copy / SINGLE_FILE).unlink()
    write_index(copy, file_of)

    with pytest.raises(DataError, match=r"contains no \*\.safetensors"):
        check_tensors(copy)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"weight_map": 3}'])
def test_a_damaged_index_is_named(copy, text):
    shard(copy)
    (copy / INDEX_FILE).write_text(text)

    with pytest.raises(DataError, match=r"index\.json cannot be read"):
        check_tensors(copy)


def test_a_second_set_of_weights_is_refused_because_engines_differ(copy):
    shutil.copyfile(copy / SINGLE_FILE, copy / "consolidated.safetensors")

    with pytest.raises(DataError, match=r"consolidated\.safetensors is not listed"):
        check_tensors(copy)


@pytest.mark.attack
@pytest.mark.parametrize("how", ["one shard has the name of all", "nothing listed", "an adapter"])
def test_weights_that_engines_read_differently_are_refused(copy, how):
    if how == "one shard has the name of all":
        file_of = shard(copy)
        first = file_of[NORM]
        (copy / first).rename(copy / SINGLE_FILE)
        write_index(
            copy, {name: SINGLE_FILE if file == first else file for name, file in file_of.items()}
        )
    elif how == "nothing listed":
        write_index(copy, {})
    else:
        (copy / "adapter_config.json").write_text('{"base_model_name_or_path": "elsewhere"}')

    with pytest.raises(DataError, match="some engines"):
        check_tensors(copy)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": "wide"},
        {"hidden_size": -128},
        {"num_hidden_layers": None},
        {"num_attention_heads": 0},
        {"model_type": "nothing"},
        {"vocab_size": 1.5},
        {"rope_parameters": "none"},
        {"hidden_act": "nothing"},
    ],
    ids=str,
)
def test_a_config_that_describes_no_model_is_named(copy, changes):
    edit_config(copy, **changes)

    with pytest.raises(DataError, match=r"config\.json"):
        check_tensors(copy)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_value_that_is_not_finite_is_counted_with_its_tensor(copy, value):
    rewrite(copy, lambda tensors: tensors[EXPERT][3].fill_(value))

    with (
        Weights(copy) as weights,
        pytest.raises(DataError, match=rf"{EXPERT} of .* has 128 of 8192 values that are NaN"),
    ):
        weights.read_finite(EXPERT)


def test_a_head_of_other_values_than_what_it_is_tied_to_is_refused(copy):
    def untie(tensors: dict[str, Tensor]) -> None:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"] + 1.0

    rewrite(copy, untie)

    with pytest.raises(DataError, match=r"ties lm_head\.weight to model\.embed_tokens\.weight"):
        check_tensors(copy)


def fuse(folder: Path) -> None:
    """Save a model as transformers does if it is asked for its own layout."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    model.save_pretrained(folder, save_original_format=False)


def test_all_experts_of_a_layer_in_one_tensor_are_read_as_one_each(copy):
    before = load_file(copy / SINGLE_FILE)
    fuse(copy)
    assert before.keys() != load_file(copy / SINGLE_FILE).keys()
    check_tensors(copy)

    with Weights(copy) as weights:
        assert before.keys() == weights.file_of.keys()
        for name, tensor in before.items():
            assert tensor.shape == weights.shape(name)
            assert tensor.equal(weights.read(name))


@pytest.mark.parametrize("is_sharded", [False, True])
def test_experts_are_separated_bit_for_bit(copy, is_sharded):
    before = load_file(copy / SINGLE_FILE)
    assert not separate_experts(copy)
    fuse(copy)
    if is_sharded:
        shard(copy)

    assert separate_experts(copy)

    after = {}
    for file in copy.glob("*.safetensors"):
        after |= load_file(file)
    assert before.keys() == after.keys()
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
    check_tensors(copy)


def test_fused_experts_in_another_order_of_axes_are_refused_by_shape(copy):
    fuse(copy)
    rewrite(
        copy,
        lambda tensors: tensors.update(
            {
                name: tensor.transpose(1, 2).contiguous()
                for name, tensor in tensors.items()
                if ".experts." in name
            }
        ),
    )

    with pytest.raises(DataError, match=r"experts\.\d+\.\w+_proj\.weight .* by its"):
        check_tensors(copy)


def test_generation_stops_at_every_end_of_a_response(copy, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    edit_config(copy, eos_token_id=[3, 4])
    (out / "generation_config.json").write_text('{"eos_token_id": 4, "temperature": 0.7}')

    write_ends(copy, out, 5)

    written = json.loads((out / "generation_config.json").read_text())
    assert {5, 3, 4} <= set(written["eos_token_id"])
    assert 0.7 == written["temperature"]


def test_settings_of_generation_that_stop_already_stay_as_they_are(copy, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    own = ends_of(load_tokenizer(copy))[0]
    (copy / "generation_config.json").unlink(missing_ok=True)
    edit_config(copy, eos_token_id=own)
    text = f'{{ "eos_token_id":   {own} }}'
    (out / "generation_config.json").write_text(text)

    write_ends(copy, out, own)

    assert text == (out / "generation_config.json").read_text()
