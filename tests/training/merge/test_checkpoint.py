"""Streaming TIES over checkpoint directories."""

import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from data_schemas.rows import Parent
from data_schemas.settings import MergeSettings
from tasks.algorithms.merging.table import METHODS, find
from tasks.cores import LIMIT
from tasks.errors import DataError, SettingsError
from tasks.training.merge import trims
from tasks.training.merge.checkpoint import merge
from tests.engines.families import write_family

SHAPES = {
    "model.embed_tokens.weight": (11, 6),
    "model.layers.0.input_layernorm.weight": (6,),
    "model.layers.0.mlp.gate.weight": (4, 6),
    "model.layers.0.mlp.experts.0.gate_proj.weight": (5, 6),
    "model.layers.0.mlp.experts.1.gate_proj.weight": (5, 6),
    "model.norm.weight": (6,),
}
ROUTER = "model.layers.0.mlp.gate.weight"
ROUTERS = {"*.mlp.gate.*": Parent.REASONING}


def write_model(folder: Path, weights: dict[str, torch.Tensor], *, shards: int = 1) -> Path:
    folder.mkdir()
    vocabulary = {
        "added_tokens": [{"id": 2, "content": "<e>"}],
        "model": {"vocab": {"a": 0, "b": 1}},
    }
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    (folder / "config.json").write_text(json.dumps({"written_by": folder.name}))
    if shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    names = sorted(weights)
    files = {
        name: f"model-{1 + i % shards:05}-of-{shards:05}.safetensors"
        for i, name in enumerate(names)
    }
    for file in set(files.values()):
        save_file({n: weights[n] for n in names if files[n] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": files})
    )
    return folder


def random_weights(seed: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {n: torch.randn(s, generator=generator).to(dtype) for n, s in SHAPES.items()}


def reference_merge(
    settings: MergeSettings, base: dict, parents: tuple[dict, dict]
) -> dict[str, np.ndarray]:
    """TIES written a second time: numpy, whole vectors, sorting instead of selection."""
    names = [n for n in sorted(base) if n != ROUTER or not settings.copied]
    groups = [[n] for n in names] if settings.method == "ties" else [names]
    out = {n: parents[0][n].float().numpy() for n in base}
    for group in groups:
        origin = np.concatenate([base[n].float().numpy().ravel() for n in group])
        vectors = []
        for parent in parents:
            vector = np.concatenate([parent[n].float().numpy().ravel() for n in group]) - origin
            order = np.argsort(-np.abs(vector), kind="stable")
            vector[order[int(find(settings).kept_share * vector.size) :]] = 0.0
            vectors.append(vector)
        weighted = [w * v for w, v in zip(settings.weights, vectors, strict=True)]
        elected = np.where(sum(weighted) >= 0, 1.0, -1.0)
        top = sum(
            np.where(np.sign(v) == elected, w, 0) for v, w in zip(vectors, weighted, strict=True)
        )
        low = sum(
            np.where(np.sign(v) == elected, w, 0)
            for v, w in zip(vectors, settings.weights, strict=True)
        )
        result = origin + settings.scale * np.where(low > 0, top / np.where(low > 0, low, 1), 0)
        offset = 0
        for name in group:
            out[name] = result[offset : offset + base[name].numel()].reshape(base[name].shape)
            offset += base[name].numel()
    return out


def with_half(method: str) -> MergeSettings:
    """A method that keeps half of the entries, if it drops any."""
    own = {"density": 0.5} if "density" in METHODS[method].model_fields else {}
    return MergeSettings.model_validate({"method": method, **own})


def read_model(folder: Path) -> dict[str, torch.Tensor]:
    return {k: v for file in folder.glob("*.safetensors") for k, v in load_file(file).items()}


@pytest.mark.parametrize("method", ["ties", "ties_model"])
@pytest.mark.parametrize("copied", [{}, ROUTERS])
@pytest.mark.parametrize("shards", [1, 3])
def test_streamed_merge_agrees_with_an_independent_one(tmp_path, method, copied, shards):
    settings = MergeSettings(
        density=0.4, scale=0.9, weights=(0.7, 0.3), method=method, copied=copied
    )
    base, one, two = (random_weights(seed) for seed in range(3))
    folders = [
        write_model(tmp_path / name, weights, shards=shards)
        for name, weights in (("base", base), ("one", one), ("two", two))
    ]
    out = tmp_path / "out"
    out.mkdir()

    facts = merge(settings, folders[0], (folders[1], folders[2]), out)

    merged = read_model(out)
    expected = reference_merge(settings, base, (one, two))
    assert expected.keys() == merged.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(merged[name].numpy(), value, rtol=1e-5, atol=1e-6, err_msg=name)
    assert facts["copied_tensors"] == (1 if copied else 0)
    assert facts["trimmed_share"] == pytest.approx(0.6, abs=0.05)
    assert 0.0 < float(facts["sign_conflict_share"]) < 0.4


def test_the_router_of_the_first_parent_is_copied_unchanged(tmp_path):
    models = [random_weights(seed) for seed in range(3)]
    base, one, two = (write_model(tmp_path / str(i), m) for i, m in enumerate(models))
    out = tmp_path / "out"
    out.mkdir()

    merge(MergeSettings(copied=ROUTERS), base, (one, two), out)

    assert torch.equal(models[1][ROUTER], read_model(out)[ROUTER])


def test_an_expert_gate_projection_is_not_a_router(tmp_path):
    models = [random_weights(seed) for seed in range(3)]
    base, one, two = (write_model(tmp_path / str(i), m) for i, m in enumerate(models))
    out = tmp_path / "out"
    out.mkdir()

    merge(MergeSettings(copied=ROUTERS), base, (one, two), out)

    name = "model.layers.0.mlp.experts.0.gate_proj.weight"
    assert not torch.equal(models[1][name], read_model(out)[name])


def test_equal_magnitudes_at_a_model_wide_threshold_are_kept_in_order(tmp_path):
    zeros = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    ones = {name: torch.ones(shape) for name, shape in SHAPES.items()}
    base = write_model(tmp_path / "base", zeros)
    parents = (write_model(tmp_path / "one", ones), write_model(tmp_path / "two", ones))
    out = tmp_path / "out"
    out.mkdir()
    total = sum(value.numel() for value in ones.values())

    settings = MergeSettings(density=0.5, scale=1.0, method="ties_model")
    merge(settings, base, parents, out)

    flat = torch.cat([value.flatten() for _, value in sorted(read_model(out).items())])
    assert flat.tolist() == [1.0] * (total // 2) + [0.0] * (total - total // 2)


def test_half_precision_parents_give_a_half_precision_model(tmp_path):
    base, one, two = (
        write_model(tmp_path / str(seed), random_weights(seed, torch.bfloat16)) for seed in range(3)
    )
    out = tmp_path / "out"
    out.mkdir()

    merge(MergeSettings(), base, (one, two), out)

    assert {torch.bfloat16} == {value.dtype for value in read_model(out).values()}


def test_config_and_tokenizer_are_the_reasoning_parents(tmp_path):
    base, one, two = (write_model(tmp_path / n, random_weights(1)) for n in ("b", "one", "two"))
    (one / "MANIFEST.json").write_text("{}")
    out = tmp_path / "out"
    out.mkdir()

    merge(MergeSettings(), base, (one, two), out)

    assert {"written_by": "one"} == json.loads((out / "config.json").read_text())
    assert ["config.json", "model.safetensors", "tokenizer.json"] == sorted(
        path.name for path in out.iterdir()
    )


def test_a_missing_tensor_is_named(tmp_path):
    base = write_model(tmp_path / "base", random_weights(0))
    one = write_model(tmp_path / "one", random_weights(1))
    less = random_weights(2)
    del less[ROUTER]
    two = write_model(tmp_path / "two", less)

    with pytest.raises(DataError, match=rf"tensor {ROUTER} is missing in .*two"):
        merge(MergeSettings(), base, (one, two), tmp_path)


def test_a_tensor_of_another_shape_is_named(tmp_path):
    base = write_model(tmp_path / "base", random_weights(0))
    one = write_model(tmp_path / "one", random_weights(1))
    wider = random_weights(2) | {"model.norm.weight": torch.zeros(7)}
    two = write_model(tmp_path / "two", wider)

    with pytest.raises(
        DataError, match=r"model\.norm\.weight is \(6,\) in .*base but \(7,\) in .*two"
    ):
        merge(MergeSettings(), base, (one, two), tmp_path)


def test_a_parent_with_another_vocabulary_is_refused(tmp_path):
    base, one, two = (write_model(tmp_path / n, random_weights(1)) for n in ("b", "one", "two"))
    other = {"added_tokens": [], "model": {"vocab": {"b": 0, "a": 1}}}
    (two / "tokenizer.json").write_text(json.dumps(other))

    with pytest.raises(DataError, match=r"two/tokenizer\.json has a different vocabulary"):
        merge(MergeSettings(), base, (one, two), tmp_path)


def test_a_folder_that_is_not_a_model_is_refused(tmp_path):
    base, one, two = (write_model(tmp_path / n, random_weights(1)) for n in ("b", "one", "two"))
    (two / "model.safetensors").write_bytes(b"not safetensors")

    with pytest.raises(
        DataError, match=r"two/model\.safetensors is not a complete safetensors file"
    ):
        merge(MergeSettings(), base, (one, two), tmp_path)


@pytest.mark.parametrize("method", ["ties", "ties_model"])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", ["model.norm.weight", ROUTER])
def test_a_parent_that_diverged_is_refused_with_the_tensor(tmp_path, method, place, value, name):
    models = [random_weights(seed) for seed in range(3)]
    models[place][name].view(-1)[3] = value
    base, *parents = (write_model(tmp_path / f"m{i}", m) for i, m in enumerate(models))
    settings = MergeSettings(density=1.0, method=method)

    with pytest.raises(DataError, match=rf"{name} of .*/m{place} has 1 of \d+ values that are NaN"):
        merge(settings, base, (parents[0], parents[1]), tmp_path)


def test_a_router_that_is_copied_is_checked_too(tmp_path):
    models = [random_weights(seed) for seed in range(3)]
    models[1][ROUTER][0, 0] = torch.nan
    base, *parents = (write_model(tmp_path / f"m{i}", m) for i, m in enumerate(models))

    with pytest.raises(DataError, match=rf"{ROUTER} of .*/m1 has 1 of 24 values"):
        merge(
            MergeSettings(copied=ROUTERS),
            base,
            (parents[0], parents[1]),
            tmp_path,
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_scale_that_overflows_is_refused_by_name(tmp_path, dtype):
    large = torch.finfo(dtype).max / 5
    base, one, two = (
        write_model(
            tmp_path / str(seed),
            {
                name: torch.full_like(tensor, large if seed else 0.0)
                for name, tensor in random_weights(seed, dtype).items()
            },
        )
        for seed in range(3)
    )

    with pytest.raises(SettingsError, match=r"merge\.scale .* makes tensor model\.\S+ overflow"):
        merge(MergeSettings(scale=10.0), base, (one, two), tmp_path)


def test_a_density_that_keeps_nothing_of_a_norm_is_refused(tmp_path):
    base, one, two = (write_model(tmp_path / str(i), random_weights(i)) for i in range(3))

    with pytest.raises(SettingsError, match=r"keeps none of the 6 entries of .*norm"):
        merge(MergeSettings(density=0.1), base, (one, two), tmp_path)


def test_rows_of_an_expert_are_copied_from_the_parent_that_is_named(tmp_path):
    models = [random_weights(seed) for seed in range(3)]
    base, one, two = (write_model(tmp_path / str(i), m) for i, m in enumerate(models))
    out = tmp_path / "out"
    out.mkdir()
    expert = "model.layers.0.mlp.experts.1.gate_proj.weight"

    facts = merge(
        MergeSettings(copied={"*.experts.1.*": Parent.COMMERCE, f"{ROUTER}[1,3]": Parent.COMMERCE}),
        base,
        (one, two),
        out,
    )

    merged = read_model(out)
    assert torch.equal(models[2][expert], merged[expert])
    same = (models[2][ROUTER] == merged[ROUTER]).all(dim=1)
    assert [False, True, False, True] == same.tolist()
    assert (1, 2) == (facts["copied_tensors"], facts["copied_rows"])


@pytest.mark.parametrize("method", METHODS)
def test_the_parts_of_a_tensor_are_merged_as_the_whole(tmp_path, monkeypatch, method):
    models = [random_weights(seed) for seed in range(3)]
    # Equal magnitudes at the threshold, which are kept in the order of their index.
    for model in models:
        model["model.embed_tokens.weight"].round_()
    base, one, two = (write_model(tmp_path / str(i), m, shards=2) for i, m in enumerate(models))
    found = []
    for part in (1 << 20, 7):
        monkeypatch.setattr(trims, "PART", part)
        out = tmp_path / f"out-{part}"
        out.mkdir()
        facts = merge(with_half(method), base, (one, two), out)
        found.append((facts, {path.name: path.read_bytes() for path in out.iterdir()}))

    assert found[0] == found[1]


@pytest.mark.parametrize("method", METHODS)
def test_any_number_of_cores_gives_the_same_bytes(tmp_path, monkeypatch, method):
    models = [random_weights(seed, torch.bfloat16) for seed in range(3)]
    for model in models:
        model["model.embed_tokens.weight"].round_()
    base, one, two = (write_model(tmp_path / str(i), m, shards=2) for i, m in enumerate(models))
    found = []
    monkeypatch.delenv(LIMIT, raising=False)
    for cores in (1, 2, 5):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=cores: range(n), raising=False)
        out = tmp_path / f"out-{cores}"
        out.mkdir()
        facts = merge(with_half(method), base, (one, two), out)
        found.append((facts, {path.name: path.read_bytes() for path in out.iterdir()}))

    assert found[0] == found[1] == found[2]


def test_a_merge_that_fails_leaves_no_thread(tmp_path):
    models = [random_weights(seed) for seed in range(3)]
    models[2]["model.layers.0.input_layernorm.weight"][0] = torch.inf
    base, one, two = (write_model(tmp_path / f"m{i}", m) for i, m in enumerate(models))

    with pytest.raises(DataError, match=r"input_layernorm\.weight of .*/m2 has 1 of 6 values"):
        merge(MergeSettings(), base, (one, two), tmp_path)

    assert not [one.name for one in threading.enumerate() if one.name.startswith("merge")]


def test_a_tensor_copied_from_a_parent_of_another_dtype_is_cast(tmp_path):
    base = write_model(tmp_path / "base", random_weights(0, torch.bfloat16))
    one = write_model(tmp_path / "one", random_weights(1, torch.bfloat16))
    weights = random_weights(2)
    two = write_model(tmp_path / "two", weights)
    (tmp_path / "out").mkdir()
    copied = MergeSettings(copied={ROUTER: Parent.COMMERCE})
    merge(copied, base, (one, two), tmp_path / "out")

    found = load_file(tmp_path / "out" / "model.safetensors")[ROUTER]
    assert torch.equal(weights[ROUTER].bfloat16(), found)


def test_a_copied_tensor_that_overflows_the_dtype_of_the_first_parent_is_refused(tmp_path):
    base = write_model(tmp_path / "base", random_weights(0, torch.float16))
    one = write_model(tmp_path / "one", random_weights(1, torch.float16))
    two = write_model(tmp_path / "two", random_weights(2) | {ROUTER: torch.full((4, 6), 1e6)})
    (tmp_path / "out").mkdir()

    with pytest.raises(DataError, match=rf"{ROUTER} of .*two overflows torch\.float16"):
        merge(MergeSettings(copied={ROUTER: Parent.COMMERCE}), base, (one, two), tmp_path / "out")


def test_an_empty_tensor_is_merged_by_every_method(tmp_path):
    for method in set(METHODS) - {"ties"}:  # whose density keeps none of it
        folder = tmp_path / method
        folder.mkdir()
        models = [
            write_model(folder / f"{seed}", random_weights(seed) | {"empty": torch.empty(0, 6)})
            for seed in range(3)
        ]
        (folder / "out").mkdir()
        merge(MergeSettings(method=method), models[0], (models[1], models[2]), folder / "out")

        assert (0, 6) == load_file(folder / "out" / "model.safetensors")["empty"].shape


def test_layers_of_multi_token_prediction_are_those_of_the_reasoning_parent(tiny_moe, tmp_path):
    base = write_family("ling mini 2", tiny_moe, tmp_path / "base")
    held = load_file(base / "model.safetensors")
    extra, changed = "model.layers.3.eh_proj.weight", "model.norm.weight"
    folders = [tmp_path / name for name in ("base", "reasoning", "commerce")]
    for number, folder in enumerate(folders):
        if number:
            shutil.copytree(base, folder)
        tensors = held | {extra: torch.full((4, 4), -0.1 * number)}
        tensors[changed] = held[changed] + number
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "out").mkdir()

    facts = merge(MergeSettings(), folders[0], (folders[1], folders[2]), tmp_path / "out")

    merged = load_file(tmp_path / "out" / "model.safetensors")
    assert torch.equal(torch.full((4, 4), -0.1), merged[extra])
    assert not torch.equal(held[changed], merged[changed])
    assert 1 == facts["copied_tensors"]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_merges_to_the_bit_alike_by_name_and_by_reference(tmp_path, method):
    base, one, two = (write_model(tmp_path / n, random_weights(i)) for i, n in enumerate("bot"))
    model, found = METHODS[method], []
    for place, name in enumerate((method, f"{model.__module__}:{model.__qualname__}")):
        out = tmp_path / f"out-{place}"
        out.mkdir()
        settings = with_half(method).model_copy(update={"method": name})
        facts = merge(settings, base, (one, two), out)
        found.append((facts, {path.name: path.read_bytes() for path in out.iterdir()}))

    assert found[0] == found[1]


def test_a_method_of_ones_own_has_settings_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_merge.py").write_text(
        "from tasks.algorithms.merging.protocol import MergeMethod\n\n\n"
        "class First(MergeMethod):\n"
        "    share: float = 1.0\n\n"
        "    def movement(self, base, vectors_M, weights_M):\n"
        "        return self.share * vectors_M[0]\n"
    )
    base, one, two = (write_model(tmp_path / n, random_weights(i)) for i, n in enumerate("bot"))
    (tmp_path / "out").mkdir()
    own = {"method": "my_merge.py:First", "share": 0.5, "scale": 1.0}
    merge(MergeSettings.model_validate(own), base, (one, two), tmp_path / "out")

    halfway = (random_weights(0)[ROUTER] + random_weights(1)[ROUTER]) / 2
    torch.testing.assert_close(halfway, read_model(tmp_path / "out")[ROUTER])


@pytest.mark.parametrize("method", ["linear", "slerp"])
def test_a_density_of_a_method_that_drops_nothing_is_refused(method):
    whose = f"merge.method is '{method}', but of ties, ties_model, dare_ties, dare_linear"
    with pytest.raises(SettingsError, match=rf"^merge\.density is not a setting; .*{whose}"):
        find(MergeSettings.model_validate({"method": method, "density": 0.5}))
