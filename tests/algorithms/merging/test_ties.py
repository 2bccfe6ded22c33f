"""TIES formulas against worked numbers and laws."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.algorithms.merging import signs, trims
from tasks.algorithms.merging.protocol import combine
from tasks.algorithms.merging.ties import Ties
from tasks.errors import SettingsError

BASE = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.0])
MODELS_M = torch.tensor([[0.5, -0.1, 1.4, 0.95, 0.02], [-0.2, -0.3, 1.6, 1.5, 0.01]])


def merged(density: float, weights: tuple[float, float], scale: float) -> torch.Tensor:
    kept = trims.num_kept(density, BASE.numel(), name="w")
    vectors = [model - BASE for model in MODELS_M]
    trimmed_M = torch.stack([trims.trim(v, trims.tensor_threshold(v, kept))[0] for v in vectors])
    return combine(Ties(), BASE, trimmed_M, torch.tensor(weights), scale).tensor


def two_pass_threshold(vectors: list[torch.Tensor], kept: int) -> trims.Threshold:
    uppers = sum(trims.magnitude_histogram(v, None) for v in vectors)
    upper, rank = trims.locate_bin(torch.as_tensor(uppers), kept)
    lowers = sum(trims.magnitude_histogram(v, upper) for v in vectors)
    lower, rank = trims.locate_bin(torch.as_tensor(lowers), rank)
    return trims.threshold_from_bins(upper, lower, rank)


@pytest.mark.parametrize(
    ("density", "weights", "scale", "expected"),
    [
        (0.6, (1.0, 1.0), 1.0, [0.5, -0.2, 1.5, 1.5, 0.0]),
        (0.6, (0.7, 0.3), 1.0, [0.5, -0.16, 1.46, 1.5, 0.0]),
        (1.0, (1.0, 1.0), 0.8, [0.4, -0.16, 1.4, 1.4, 0.012]),
    ],
)
def test_the_worked_example_comes_out(density, weights, scale, expected):
    torch.testing.assert_close(merged(density, weights, scale), torch.tensor(expected))


def test_trimming_keeps_the_three_largest_of_five():
    vector = MODELS_M[0] - BASE

    trimmed, _ = trims.trim(vector, trims.tensor_threshold(vector, 3))

    torch.testing.assert_close(trimmed, torch.tensor([0.5, -0.1, 0.4, 0.0, 0.0]))


def test_of_equal_magnitudes_the_lower_index_is_kept():
    vector = torch.tensor([0.1, -0.3, 0.3, 0.3, 0.2])

    trimmed, used = trims.trim(vector, trims.tensor_threshold(vector, 2))

    torch.testing.assert_close(trimmed, torch.tensor([0.0, -0.3, 0.3, 0.0, 0.0]))
    assert used == 2


def test_signs_are_elected_by_mass_and_a_tie_elects_plus():
    trimmed_M = torch.tensor([[0.5, -0.1, 0.2, 0.0], [-0.2, 0.3, -0.2, 0.0]])

    elected = signs.elect_signs(trimmed_M, torch.tensor([1.0, 1.0]))

    assert elected.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert signs.elect_signs(trimmed_M, torch.tensor([1.0, 3.0])).tolist() == [
        -1.0,
        1.0,
        -1.0,
        1.0,
    ]


def test_a_trimmed_entry_never_counts_in_the_mean():
    mean = signs.disjoint_mean(
        torch.tensor([[0.4, 0.0], [0.0, 0.0]]), torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0])
    )

    torch.testing.assert_close(mean, torch.tensor([0.4, 0.0]))


def test_conflicts_are_entries_pulled_both_ways():
    trimmed_M = torch.tensor([[0.5, -0.1, 0.2, 0.0], [-0.2, -0.3, 0.2, 0.1]])

    result = combine(Ties(), torch.zeros(4), trimmed_M, torch.ones(2), 1.0)

    assert result.num_conflicts == 1


def test_a_density_that_keeps_nothing_is_refused_by_name():
    with pytest.raises(
        SettingsError, match=r"density 0\.1 keeps none of the 5 entries of norm\.weig"
    ):
        trims.num_kept(0.1, 5, name="norm.weight")


def test_two_equal_parents_merge_to_themselves_at_full_density():
    parent = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    vectors_M = torch.stack([parent, parent])

    result = combine(Ties(), torch.zeros(7, 5), vectors_M, torch.tensor([0.3, 0.7]), 1.0)

    torch.testing.assert_close(result.tensor, parent)
    assert result.num_conflicts == 0


floats = st.one_of(
    st.floats(-4, 4, width=32),
    st.sampled_from([0.0, 0.5, -0.5]),
    st.floats(-(2.0**-80), 2.0**-80, width=32),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(floats, min_size=1, max_size=60), st.data())
def test_two_histogram_passes_find_the_exact_threshold(values, data):
    kept = data.draw(st.integers(1, len(values)))
    vector = torch.tensor(values, dtype=torch.float32)
    split = data.draw(st.integers(0, len(values)))

    found = two_pass_threshold([vector[:split], vector[split:]], kept)

    assert found == trims.tensor_threshold(vector, kept)
    assert int((vector.abs() > found.magnitude).sum()) + found.num_equal == kept


@settings(max_examples=200, deadline=None)
@given(st.lists(floats, min_size=1, max_size=60), floats, floats, st.data())
def test_a_threshold_is_found_exactly_if_it_is_in_the_bracket(values, one, other, data):
    kept = data.draw(st.integers(1, len(values)))
    vector = torch.tensor(values, dtype=torch.float32)
    split = data.draw(st.integers(0, len(values)))
    low, high = sorted((abs(one), abs(other)))
    cut = sorted(map(abs, values), reverse=True)[kept - 1]

    found = trims.threshold_within([vector[:split], vector[split:]], kept, (low, high))

    expected = trims.Threshold(cut, kept - sum(abs(value) > cut for value in values))
    assert found == (expected if low <= cut <= high else None)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_the_bracket_of_a_sample_holds_the_threshold_and_few_entries(share):
    vector = torch.randn(1_000_000, generator=torch.Generator().manual_seed(0))
    cut = trims.tensor_threshold(vector, int(share * vector.numel())).magnitude

    low, high = trims.bracket(vector[::50], share)

    assert low <= cut <= high
    inside = (vector.abs() >= low) & (vector.abs() <= high)
    assert float(inside.float().mean()) < 0.05


@settings(max_examples=200, deadline=None)
@given(st.lists(floats, min_size=1, max_size=60), st.data())
def test_a_trim_keeps_what_a_stable_sort_keeps(values, data):
    kept = data.draw(st.integers(1, len(values)))
    vector = torch.tensor(values, dtype=torch.float32)
    first = vector.abs().sort(descending=True, stable=True).indices[:kept]
    expected = torch.zeros_like(vector)
    expected[first] = vector[first]

    trimmed, _ = trims.trim(vector, trims.tensor_threshold(vector, kept))

    assert expected.tolist() == trimmed.tolist()
