"""An upcycled model computes what it computed before, bit for bit."""

import json
import shutil

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from tasks.engines.embedded.hf_model import load_model
from tasks.errors import SettingsError
from tasks.lab.recipes.grove_moe.settings import UpcyclingSettings
from tasks.lab.recipes.grove_moe.upcycling import upcycle
from tasks.models.model_folder import SHIPPED, check_model_folder
from tasks.models.weights import INDEX_FILE, Weights


def logits(folder):
    tokens_NT = torch.randint(0, 256, (3, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return load_model(folder)(tokens_NT).logits


@pytest.fixture(scope="module")
def upcycled(tmp_path_factory):
    out = tmp_path_factory.mktemp("upcycled")
    return out, upcycle(UpcyclingSettings(), SHIPPED, out)


def test_the_logits_are_those_of_the_base(upcycled):
    out, facts = upcycled

    assert 0.0 == float((logits(out) - logits(SHIPPED)).abs().max())
    assert (4, 73_728) == (facts["adjugates"], facts["parameters_added"])
    assert 34_230.857143 == pytest.approx(facts["active_parameters_added"])
    check_model_folder(out)


def test_the_tensors_of_the_base_are_copied_and_only_adjugates_added(upcycled):
    with Weights(SHIPPED) as before, Weights(upcycled[0]) as after:
        added = after.file_of.keys() - before.file_of.keys()

        assert all(torch.equal(before.read(name), after.read(name)) for name in before.file_of)
        assert all(".mlp.chunk_experts." in name for name in added)
        drawn = torch.cat([after.read(n).flatten().float() for n in added if "gate_proj" in n])
        assert 0.006 == pytest.approx(float(drawn.std()), rel=0.05)


def test_a_saved_model_has_the_names_of_its_file(upcycled, tmp_path):
    model = load_model(upcycled[0])
    model.save_pretrained(tmp_path)
    with Weights(upcycled[0]) as ours, Weights(tmp_path) as saved:
        assert ours.file_of.keys() == saved.file_of.keys()
    assert "grove_moe" == json.loads((tmp_path / "config.json").read_text())["model_type"]


def test_a_base_of_several_files_keeps_them(tmp_path):
    shards, out = tmp_path / "shards", tmp_path / "out"
    shutil.copytree(SHIPPED, shards)
    (shards / "model.safetensors").unlink()
    AutoModelForCausalLM.from_pretrained(SHIPPED).save_pretrained(shards, max_shard_size="1MB")
    files = sorted(path.name for path in shards.glob("*.safetensors"))
    out.mkdir()
    upcycle(UpcyclingSettings(), shards, out)

    assert len(files) > 1
    assert all(load_file(out / file).keys() == load_file(shards / file).keys() for file in files)
    listed = json.loads((out / INDEX_FILE).read_text())["weight_map"]
    assert {*files} < {*listed.values()}
    assert 0.0 == float((logits(out) - logits(SHIPPED)).abs().max())


def test_another_seed_draws_other_adjugates_and_the_same_one_the_same_bytes(upcycled, tmp_path):
    file = "model-chunk-experts-00001.safetensors"
    for seed in (0, 1):
        (tmp_path / str(seed)).mkdir()
        upcycle(UpcyclingSettings(seed=seed), SHIPPED, tmp_path / str(seed))

    assert (upcycled[0] / file).read_bytes() == (tmp_path / "0" / file).read_bytes()
    assert (upcycled[0] / file).read_bytes() != (tmp_path / "1" / file).read_bytes()


def test_what_has_no_experts_or_cannot_be_grouped_is_refused(upcycled, tiny_dense, tmp_path):
    with pytest.raises(SettingsError, match=r"is a qwen[23] model; adjugate experts are added to"):
        upcycle(UpcyclingSettings(), tiny_dense, tmp_path)
    with pytest.raises(SettingsError, match="is a grove_moe model; adjugate experts"):
        upcycle(UpcyclingSettings(), upcycled[0], tmp_path)
    with pytest.raises(SettingsError, match="experts_per_group 3 does not divide the 8 experts"):
        upcycle(UpcyclingSettings(experts_per_group=3), SHIPPED, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_token_never_weighs_an_adjugate_more_than_its_experts():
    with pytest.raises(ValidationError, match=r"scale 0\.6 exceeds 1 / experts_per_group"):
        UpcyclingSettings(scale=0.6)
    assert 0.5 == UpcyclingSettings(scale=0.5).scale
