"""Our merges against those of mergekit, tensor by tensor: `make test-mergekit`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from data_schemas.settings import MergeSettings
from tasks.algorithms.merging.table import METHODS
from tasks.algorithms.merging.trims import tensor_threshold
from tasks.training.merge.checkpoint import DRAW_SEED, merge
from tests.test_layout import ROOT

pytestmark = pytest.mark.mergekit
PYTHON = ROOT / ".venv-mergekit" / "bin" / "python"
# Weights and density without rounding error: both sides elect a sign from the same sums.
DENSITY, SCALE, WEIGHTS = 0.5, 0.9, (0.75, 0.25)
ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 2**-7}
"""Largest relative difference: the order of fp32 sums, and the last bit of bf16."""


def task_vectors(**shared: object):
    """mergekit's configuration of a method on task vectors."""

    def configure(base: str, parents: list[str]) -> dict[str, object]:
        models = [
            {"model": parent, "parameters": {"weight": weight, "density": DENSITY}}
            for parent, weight in zip(parents, WEIGHTS, strict=True)
        ]
        return {"base_model": base, "models": models, "parameters": shared}

    return configure


def of_parents(base: str, parents: list[str]) -> dict[str, object]:
    """mergekit's linear has neither base nor scale."""
    models = [
        {"model": parent, "parameters": {"weight": weight}}
        for parent, weight in zip(parents, WEIGHTS, strict=True)
    ]
    return {"models": models}


def between(base: str, parents: list[str]) -> dict[str, object]:
    """mergekit's slerp starts at what it calls the base: our first parent."""
    models = [{"model": parent} for parent in parents]
    return {"base_model": parents[0], "models": models, "parameters": {"t": WEIGHTS[1]}}


# Ours divides by the density, mergekit by the ratio of L1 norms: it is told not to rescale, and
# its lambda does it. Its dare_ties adds what agrees unless it is told to normalize.
DARE = {"rescale": False, "lambda": SCALE / DENSITY}
CASES = {
    "ties": ("ties", SCALE, task_vectors(**{"lambda": SCALE})),
    "linear": ("linear", 1.0, of_parents),
    "task_arithmetic": ("task_arithmetic", SCALE, task_vectors(**{"lambda": SCALE})),
    "dare_ties": ("dare_ties", SCALE, task_vectors(**DARE, normalize=True)),
    "dare_linear": ("dare_linear", SCALE, task_vectors(**DARE, normalize=False)),
    "slerp": ("slerp", 1.0, between),
}
"""mergekit's name, the scale that it has, and its configuration. It has no trim over the model."""


def noisy_copy(source: Path, out: Path, seed: int, dtype: torch.dtype) -> Path:
    """Write a model that has moved from `source` by as much as its weights are large."""
    shutil.copytree(source, out)
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, tensor in load_file(source / "model.safetensors").items():
        noise = torch.randn(tensor.shape, generator=generator) * tensor.float().std().clamp(0.01)
        weights[name] = (tensor.float() + noise * bool(seed)).to(dtype)
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    return out


@pytest.fixture(scope="module", params=list(ROUNDING), ids=str)
def merged(request, tiny_moe, tmp_path_factory):
    """Both sides' tensors of every method, and those of the base and the parents."""
    folder = tmp_path_factory.mktemp("merges")
    base, *parents = (
        noisy_copy(tiny_moe, folder / f"model-{seed}", seed, request.param) for seed in range(3)
    )
    merges = []
    ours = {}
    names = [str(parent) for parent in parents]
    for method, (theirs, scale, configure) in CASES.items():
        out = folder / f"ours-{theirs}"
        out.mkdir()
        own = {"density": DENSITY} if "density" in METHODS[method].model_fields else {}
        settings = MergeSettings(method=method, scale=scale, weights=WEIGHTS, **own)
        merge(settings, base, (parents[0], parents[1]), out)
        ours[method] = load_file(out / "model.safetensors")
        config = configure(str(base), names) | {
            "merge_method": theirs,
            "dtype": "float32",
            "out_dtype": str(request.param).removeprefix("torch."),
        }
        merges.append({"config": config, "out": str(folder / f"theirs-{theirs}")})
    plan = folder / "plan.json"
    plan.write_text(
        json.dumps({"base": str(base), "parents": names, "seed": DRAW_SEED, "merges": merges})
    )
    subprocess.run(
        [PYTHON, Path(__file__).with_name("mergekit_tool.py"), plan],
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
    )
    theirs = {
        method: {
            name: tensor
            for file in (folder / f"theirs-{name_there}").glob("*.safetensors")
            for name, tensor in load_file(file).items()
        }
        for method, (name_there, _, _) in CASES.items()
    }
    models = [load_file(model / "model.safetensors") for model in (base, *parents)]
    return ours, theirs, models


def is_at_threshold(base: torch.Tensor, parents: list[torch.Tensor]) -> torch.Tensor:
    """Entries of which a trim may keep either: as large as the smallest that is kept."""
    found = torch.zeros(base.shape, dtype=torch.bool)
    for parent in parents:
        vector = parent.float() - base.float()
        cut = tensor_threshold(vector, int(DENSITY * vector.numel()))
        found |= vector.abs() == cut.magnitude
    return found


@pytest.mark.parametrize("method", list(CASES))
def test_every_tensor_agrees_up_to_rounding(merged, method):
    ours, theirs, (base, *parents) = merged

    assert ours[method].keys() == theirs[method].keys()
    for name, tensor in theirs[method].items():
        assert base[name].dtype == tensor.dtype
        tolerance = ROUNDING[tensor.dtype]
        same = torch.isclose(
            ours[method][name].float(),
            tensor.float(),
            rtol=tolerance,
            atol=float(tensor.float().abs().max()) * 2e-6,
        )
        if method == "ties":
            same |= is_at_threshold(base[name], [parent[name] for parent in parents])
        assert bool(same.all()), name
