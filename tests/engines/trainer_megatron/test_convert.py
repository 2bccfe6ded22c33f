"""No bit is lost between a Hugging Face directory and Megatron's ranks."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.algorithms.digests import weight_digest
from tasks.engines.chat import ends_of, load_tokenizer
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.models.weights import write_ends
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.layouts import LAYOUTS
from tests.engines.trainer_megatron.model_ranks import find, refusal_to_load, save_in_pieces
from tests.engines.trainer_megatron.small_models import open_model

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_rank_exports_what_was_read(world, layout):
    found = world(layout)

    for name, folder in found.sources.items():
        read = weight_digest(load_file(folder / "model.safetensors").items())
        assert [read] * len(found.ranks) == [rank[name].exported for rank in found.ranks]
        assert [read] * len(found.ranks) == [rank[name].in_pieces for rank in found.ranks]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_saved_directories_are_those_transformers_writes_with_every_end_token(
    world, layout, tmp_path
):
    found = world(layout)

    for name, folder in found.sources.items():
        theirs = tmp_path / name
        open_model(folder).save_pretrained(theirs)
        tokenizer = load_tokenizer(folder)
        tokenizer.save_pretrained(theirs)
        write_ends(folder, theirs, ends_of(tokenizer)[0])
        files = sorted(path.name for path in theirs.iterdir())
        assert files == sorted(path.name for path in (found.saved / name).iterdir())
        for file in files:
            assert (theirs / file).read_bytes() == (found.saved / name / file).read_bytes(), file


def test_the_torch_trainer_exports_and_reads_the_same(world):
    found = world(LAYOUTS["2 stages of 2"])

    for name in ("moe", "moe_tied", "moe_odd_vocabulary"):
        for folder in (found.sources[name], found.saved / name):
            assert found.ranks[0][name].exported == weight_digest(TorchTrainer(folder).weights())


def test_large_models_are_cut_into_files_that_load_again(small_models, tmp_path):
    source = small_models["moe"]
    pieces, again = tmp_path / "pieces", tmp_path / "again"
    run_world(save_in_pieces, 2, source, LayoutSettings(expert=2), pieces)
    run_world(find, 1, {"moe": pieces}, LayoutSettings(), again)

    assert len(list(pieces.glob("*.safetensors"))) > 3
    index = json.loads((pieces / "model.safetensors.index.json").read_text())
    assert {path.name for path in pieces.glob("*.safetensors")} == set(index["weight_map"].values())
    expected = open_model(source).state_dict()
    for folder in (pieces, again / "moe"):
        state = open_model(folder).state_dict()
        assert expected.keys() == state.keys()
        assert all(torch.equal(tensor, state[name]) for name, tensor in expected.items())


def test_bf16_models_are_saved_as_such(small_models, tmp_path):
    layout = LayoutSettings(precision=Precision.BF16, tensor=2, expert=2)
    run_world(find, 2, {"moe": small_models["moe"]}, layout, tmp_path)
    saved = load_file(tmp_path / "moe" / "model.safetensors")

    assert "bfloat16" == json.loads((tmp_path / "moe" / "config.json").read_text())["dtype"]
    for name, tensor in load_file(small_models["moe"] / "model.safetensors").items():
        assert torch.equal(tensor.bfloat16(), saved[name])


@pytest.mark.parametrize("fault", ["missing", "unknown", "shape"])
def test_files_that_are_not_the_model_are_refused_by_name(small_models, tmp_path, fault):
    folder = tmp_path / "model"
    shutil.copytree(small_models["dense"], folder)
    tensors = load_file(folder / "model.safetensors")
    name = "model.layers.1.mlp.up_proj.weight"
    tensor = tensors.pop(name)
    if fault == "unknown":
        tensors |= {name: tensor, "model.layers.1.mlp.up_proj.scale": tensor.clone()}
    if fault == "shape":
        tensors[name] = tensor[:-1].clone()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    (message,) = run_world(refusal_to_load, 1, folder)

    assert name.removesuffix("weight") in message
