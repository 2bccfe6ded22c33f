"""The rule for Super Experts in its three readings."""

import json
from pathlib import Path

import numpy as np
import pytest

from tasks.lab.recipes.super_experts.formulas import (
    massive_layers,
    read_algorithm,
    read_code,
    read_eq_6,
)

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
TINY = VECTORS["tiny"]
QWEN = VECTORS["qwen3_like"]
MASSIVE = (1, 2, 3)


def qwen_like(last_layer: float = 0.0) -> np.ndarray:
    """48 layers of 128 experts with the published peaks in place."""
    peaks_LE = np.linspace(0.1, 7, QWEN["experts"]).reshape(48, 128)
    for layer, expert, peak in QWEN["placed"]:
        peaks_LE[layer, expert] = peak
    if last_layer:
        peaks_LE[47, 0] = last_layer
    return peaks_LE


def places(vector) -> tuple[tuple[int, int], ...]:
    return tuple((layer, expert) for layer, expert, _ in vector["picked_layer_expert_peak"])


def test_equation_6_names_the_published_three():
    found = read_eq_6(qwen_like(), MASSIVE)

    assert QWEN["result_eq6"]["cut"] == pytest.approx(found.cut)
    assert places(QWEN["result_eq6"]) == found.named


def test_the_readings_differ_when_the_last_layer_has_an_outlier():
    vectors, peaks_LE = VECTORS["readings_with_a_last_layer_outlier_5000"], qwen_like(5000.0)
    found = {
        "eq6_all_layers": read_eq_6(peaks_LE, MASSIVE),
        "algorithm_only_ma_layers": read_algorithm(peaks_LE, MASSIVE),
        "released_code_first_three_quarters": read_code(peaks_LE),
    }

    assert {name: places(one) for name, one in vectors.items()} == {
        name: reading.named for name, reading in found.items()
    }
    assert {name: one["cut"] for name, one in vectors.items()} == {
        name: pytest.approx(reading.cut) for name, reading in found.items()
    }


@pytest.mark.parametrize(("experts", "above"), VECTORS["experts_above_p99_5"].items())
def test_few_experts_are_above_the_percentile(experts, above):
    peaks_LE = np.arange(1.0, int(experts) + 1).reshape(1, -1)

    assert above == len(read_eq_6(peaks_LE, (0,)).named)


def test_a_small_model_without_massive_activations_has_none_although_the_code_names_one():
    peaks_LE = np.array(TINY["peaks_LE"])
    largest, median = zip(*TINY["hidden_max_median"], strict=True)
    massive = massive_layers(largest, median)
    code, unfiltered = read_code(peaks_LE), read_eq_6(peaks_LE, range(3))

    assert tuple(TINY["layers_with_massive"]) == massive
    assert ((), ()) == (read_eq_6(peaks_LE, massive).named, read_algorithm(peaks_LE, massive).named)
    # The vectors count layers from 1.
    assert ((1, 1),) == code.named
    assert ((2, 0),) == unfiltered.named
    expected = TINY["code_filter_layers_below_round_0.75L"]
    assert (expected["cut"], expected["p99_5"]) == (code.cut, pytest.approx(code.percentile))
    expected = TINY["no_layer_filter"]
    assert expected["cut"] == pytest.approx(unfiltered.cut)
    assert expected["p99_5"] == pytest.approx(unfiltered.percentile)


@pytest.mark.parametrize(
    ("largest", "median", "massive"),
    [(1001.0, 1.0, True), (1000.0, 1.0, False), (100.0, 1e-3, False), (101.0, 0.1, True)],
)
def test_a_massive_activation_is_large_and_a_thousand_medians(largest, median, massive):
    assert ((0,) if massive else ()) == massive_layers([largest], [median])
