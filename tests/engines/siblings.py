"""Whether samples of one prompt are drawn independently of each other."""

import torch


def deviations(tokens_S: torch.Tensor, chances_V: torch.Tensor) -> float:
    """Standard deviations between the pairs of samples that agree and those that should.

    Args:
        tokens_S: first token of every sample, 3 or more.
        chances_V: what each token was drawn with.
    """
    count = len(tokens_S)
    agree = int((tokens_S[:, None] == tokens_S).sum() - count) // 2
    # Pairs share their members: the variance of their number is that of a U-statistic.
    second, third = float(chances_V.square().sum()), float(chances_V.pow(3).sum())
    pairs = count * (count - 1) // 2
    variance = pairs * (second - second**2) + count * (count - 1) * (count - 2) * (
        third - second**2
    )
    return abs(agree - pairs * second) / variance**0.5
