"""RL-ZVP: advantages of groups whose rewards are all equal."""

import json
from pathlib import Path

import pytest
import torch

from tasks.algorithms.terms.fold import fold_step
from tasks.algorithms.terms.rl_zvp import RLZVP, rl_zvp_advantages
from tests.algorithms.signals import signal_of

VECTORS = json.loads((Path(__file__).parents[1] / "vectors.json").read_text())


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


def test_only_zero_variance_groups_are_given_advantages():
    signal = signal_of(
        torch.ones(2, 2, dtype=torch.bool),
        entropy_NT=torch.tensor([[0.5, 2.0], [0.5, 2.0]]),
        zero_variance_N=torch.tensor([True, False]),
        correct_N=torch.tensor([True, True]),
    )

    assert [[pytest.approx(0.1), pytest.approx(0.4)], [0.0, 0.0]] == fold_step(
        [RLZVP(alpha=0.2)], signal
    ).advantages_NT.tolist()


def test_a_step_without_a_sequence_has_nothing_to_teach():
    signal = signal_of(torch.ones(0, 0, dtype=torch.bool))

    assert [] == fold_step([RLZVP()], signal).advantages_NT.tolist()
