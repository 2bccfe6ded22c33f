import json
from pathlib import Path

import pytest
import torch

from tasks.algorithms.zero_variance import rl_zvp_advantages, zero_variance_probability

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


@pytest.mark.parametrize(("key", "correct"), [("all_correct", True), ("all_wrong", False)])
def test_rl_zvp_gives_the_worked_numbers(key, correct):
    vector = VECTORS["rl_zvp"]
    rows = vector["inputs"]["entropy"]
    width = max(len(row) for row in rows)
    entropy = torch.tensor([row + [9.0] * (width - len(row)) for row in rows])  # padding is loud
    mask = torch.arange(width) < torch.tensor([[len(row)] for row in rows])

    found = rl_zvp_advantages(
        entropy, mask, torch.full((len(rows),), correct), alpha=vector["inputs"]["alpha"]
    )

    for row, expected in enumerate(vector[key]):
        assert expected == pytest.approx(found[row, : len(expected)].tolist(), abs=1e-6)
        assert not found[row, len(expected) :].any()


def test_the_most_uncertain_token_of_a_wrong_response_is_not_punished():
    found = rl_zvp_advantages(
        torch.tensor([[0.3, 2.0, 0.1]]),
        torch.ones(1, 3, dtype=torch.bool),
        torch.tensor([False]),
        alpha=0.1,
    )

    assert 0.0 == float(found[0, 1])
    assert (found <= 0).all()


@pytest.mark.parametrize("row", VECTORS["zero_variance_probability"]["table"], ids=str)
def test_chance_of_a_zero_variance_group(row):
    for size in (4, 8, 16, 32):
        assert row[f"N{size}"] == pytest.approx(zero_variance_probability(row["p"], size))
