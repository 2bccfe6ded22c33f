import math

import pytest
import torch

from tasks.algorithms.sft_loss import (
    RING_LITE_VOCABULARY,
    choose_checkpoint,
    response_cross_entropy,
    scaled_window,
)

WINDOW = (0.3, 0.5)


def test_only_response_tokens_count():
    logprobs = torch.tensor([[-9.0, -1.0, -3.0], [-9.0, -2.0, -9.0]])
    mask = torch.tensor([[False, True, True], [False, True, False]])

    assert 2.0 == float(response_cross_entropy(logprobs, mask, num_tokens=3))


def test_the_window_shrinks_with_the_largest_possible_entropy():
    low, high = scaled_window(WINDOW, 768)

    assert 0.3 * math.log(768) / math.log(RING_LITE_VOCABULARY) == pytest.approx(low)
    assert WINDOW == pytest.approx(scaled_window(WINDOW, RING_LITE_VOCABULARY))
    assert low < high < 0.5


@pytest.mark.parametrize(
    ("entropies", "losses", "chosen"),
    [
        ([0.9, 0.45, 0.35], [1.0, 0.8, 0.7], 2),  # two inside: lower validation loss
        ([0.9, 0.6, 0.1], [1.0, 0.9, 0.2], 1),  # none inside: the nearest, not the best loss
        ([0.4, 0.4], [0.5, 0.5], 0),  # a tie: the earlier
    ],
)
def test_the_checkpoint_is_chosen_by_entropy_before_loss(entropies, losses, chosen):
    assert chosen == choose_checkpoint(entropies, losses, WINDOW)
