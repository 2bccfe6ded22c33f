"""Thresholds from parts and samples, against sorting."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from tasks.algorithms.merging.trims import Threshold
from tasks.models.weights import Weights
from tasks.training.merge import trims

ENTRIES = st.one_of(
    st.floats(-4, 4, width=32),
    st.sampled_from([0.0, -0.0, 0.5, -0.5, 2.0**-149, -(2.0**-149)]),
    st.floats(-(2.0**-130), 2.0**-130, width=32),
)
VECTORS = st.one_of(
    st.lists(ENTRIES, min_size=1, max_size=80),
    st.builds(lambda value, count: [value] * count, ENTRIES, st.integers(1, 80)),
)


def by_sorting(vector: torch.Tensor, kept: int) -> Threshold:
    ordered = vector.abs().flatten().sort(descending=True).values
    cut = float(ordered[kept - 1])
    return Threshold(cut, kept - int((ordered > cut).sum()))


@pytest.fixture(autouse=True)
def parts_and_samples_are_small(monkeypatch):
    monkeypatch.setattr(trims, "PART", 7)
    monkeypatch.setattr(trims, "SAMPLE", 5)


@settings(max_examples=300, deadline=None)
@given(VECTORS, st.data())
def test_a_tensors_trim_is_that_of_sorting(values, data):
    vector = torch.tensor(values)
    kept = data.draw(st.integers(1, len(values)))

    found = trims.tensor_trim(vector, torch.zeros(len(values)), kept)

    assert by_sorting(vector, kept) == found


def test_a_sample_that_is_not_like_the_tensor_changes_nothing(monkeypatch):
    monkeypatch.setattr(trims, "SAMPLE", 500)
    vector = torch.randn(101, 101, generator=torch.Generator().manual_seed(0))
    # The step is 21: the sample has zeros alone.
    vector.view(-1)[::21] = 0.0

    found = trims.tensor_trim(vector, torch.zeros(101, 101), 3000)

    assert by_sorting(vector, 3000) == found


def test_a_trim_leaves_both_tensors_as_they_are():
    parent, base = torch.arange(20.0), torch.ones(20)

    trims.tensor_trim(parent, base, 10)

    assert torch.equal(torch.arange(20.0), parent)
    assert torch.equal(torch.ones(20), base)


@pytest.mark.parametrize("density", [0.01, 0.3, 0.5, 1.0])
def test_a_models_trim_is_that_of_all_its_tensors_and_earlier_ones_keep_equal_entries(
    tmp_path: Path, density
):
    generator = torch.Generator().manual_seed(0)
    names = ["c", "a", "b"]
    moved = {name: torch.randn(30, 2, generator=generator).mul_(4).round_() for name in names}
    for folder, weights in (
        ("base", {name: torch.zeros(30, 2) for name in names}),
        ("parent", moved),
    ):
        (tmp_path / folder).mkdir()
        save_file(weights, tmp_path / folder / "model.safetensors")

    with Weights(tmp_path / "parent") as parent, Weights(tmp_path / "base") as base:
        found = trims.model_trim(parent, base, names, density)

    whole = by_sorting(torch.cat([moved[name] for name in names]), int(density * 180))
    assert names == list(found)
    assert {whole.magnitude} == {trim.magnitude for trim in found.values()}
    left = whole.num_equal
    for name in names:
        equal = int((moved[name].abs() == whole.magnitude).sum())
        assert min(left, equal) == found[name].num_equal
        left -= found[name].num_equal
    assert 0 == left
