"""All methods behind one call: worked numbers, and laws that hold for each."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.algorithms.merging.protocol import combine
from tasks.algorithms.merging.table import METHODS

BASE = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.0])
MODELS_M = torch.tensor([[0.5, -0.1, 1.4, 0.95, 0.02], [-0.2, -0.3, 1.6, 1.5, 0.01]])
MEANS = [method for method in METHODS if method not in ("task_arithmetic", "dare_linear")]
numbers = st.lists(st.floats(-4, 4, width=32), min_size=3, max_size=3)


@pytest.mark.parametrize(
    ("method", "weights", "scale", "expected"),
    [
        # The plain mean of the two models, then 0.75 of the first and 0.25 of the second.
        ("linear", (1.0, 1.0), 1.0, [0.15, -0.2, 1.5, 1.225, 0.015]),
        ("linear", (3.0, 1.0), 1.0, [0.325, -0.15, 1.45, 1.0875, 0.0175]),
        ("task_arithmetic", (1.0, 1.0), 0.5, [0.15, -0.2, 1.5, 1.225, 0.015]),
        ("task_arithmetic", (2.0, 1.0), 1.0, [0.8, -0.5, 2.4, 1.4, 0.05]),
        ("dare_linear", (2.0, 1.0), 1.0, [0.8, -0.5, 2.4, 1.4, 0.05]),
        ("dare_ties", (1.0, 1.0), 0.8, [0.4, -0.16, 1.4, 1.4, 0.012]),
        ("ties_model", (1.0, 1.0), 0.8, [0.4, -0.16, 1.4, 1.4, 0.012]),
    ],
)
def test_worked_examples_come_out(method, weights, scale, expected):
    merged = combine(METHODS[method](), BASE, MODELS_M - BASE, torch.tensor(weights), scale)

    torch.testing.assert_close(merged.tensor, torch.tensor(expected))


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=20, deadline=None)
@given(numbers, numbers, numbers)
def test_a_scale_of_zero_is_the_base(method, base, one, two):
    vectors_M = torch.tensor([one, two])

    merged = combine(
        METHODS[method](), torch.tensor(base), vectors_M, torch.tensor([0.3, 0.7]), 0.0
    )

    assert base == merged.tensor.tolist()


@pytest.mark.parametrize("method", MEANS)
@settings(max_examples=20, deadline=None)
@given(numbers, numbers, st.floats(0.1, 10.0))
def test_two_equal_parents_merge_to_themselves(method, base, parent, weight):
    vector = torch.tensor(parent) - torch.tensor(base)

    merged = combine(
        METHODS[method](),
        torch.tensor(base),
        torch.stack([vector, vector]),
        torch.tensor([weight, 1.0]),
        1.0,
    )

    torch.testing.assert_close(merged.tensor, torch.tensor(parent), rtol=1e-5, atol=1e-5)
    assert 0 == merged.num_conflicts


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=20, deadline=None)
@given(numbers, numbers, numbers, st.floats(0.1, 10.0))
def test_the_order_of_the_parents_does_not_matter(method, base, one, two, weight):
    vectors_M, weights_M = torch.tensor([one, two]), torch.tensor([weight, 1.0])

    merged = combine(METHODS[method](), torch.tensor(base), vectors_M, weights_M, 1.0)
    turned = combine(
        METHODS[method](), torch.tensor(base), vectors_M.flip(0), weights_M.flip(0), 1.0
    )

    torch.testing.assert_close(merged.tensor, turned.tensor, rtol=1e-4, atol=1e-4)
    assert merged.num_conflicts == turned.num_conflicts


@pytest.mark.parametrize("method", MEANS)
@settings(max_examples=20, deadline=None)
@given(numbers, numbers, numbers, st.floats(0.1, 10.0))
def test_only_the_ratio_of_the_weights_counts_in_a_mean(method, base, one, two, factor):
    vectors_M, weights_M = torch.tensor([one, two]), torch.tensor([0.6, 0.4])

    merged = combine(METHODS[method](), torch.tensor(base), vectors_M, weights_M, 1.0)
    scaled = combine(METHODS[method](), torch.tensor(base), vectors_M, weights_M * factor, 1.0)

    torch.testing.assert_close(merged.tensor, scaled.tensor, rtol=1e-4, atol=1e-4)
