"""Rewards and pass rates, corrected for the known error rates of a verifier.

A verifier accepts a wrong response with probability f (false positive) and rejects a right one
with probability n (false negative). Of a verdict R in {0, 1}, (R - f) / (1 - f - n) has the mean 1
if the response is right and 0 if it is wrong.

Source: arXiv 2510.00915, backward correction.
Differs: no forward correction. It weighs an accepted response with n and a rejected one with n - 1,
which is R plus a constant: any baseline of the group removes it.
Limits: the correction is affine, so a group divided by its standard deviation loses it altogether,
and one that is centred only is scaled by 1 / (1 - f - n): it restores the weight of noisy problems
beside others, and its variance with it. The rates hold for errors independent of each other; a form
of wrong answers that is always accepted stays rewarded.
Letters: P problems, G rollouts per problem.
"""

import torch


def corrected_rewards(
    scores_PG: torch.Tensor, false_positive_P: torch.Tensor, false_negative_P: torch.Tensor
) -> torch.Tensor:
    """Return (R - f) / (1 - f - n) of every verdict [P, G].

    Args:
        scores_PG: verdicts in [0, 1]; a score between is corrected like the mean of such verdicts.
        false_positive_P: f of the verifier of each problem.
        false_negative_P: n, with f + n < 1; rates of 0 return the scores.
    """
    informed_P1 = (1.0 - false_positive_P - false_negative_P)[:, None]
    return (scores_PG - false_positive_P[:, None]) / informed_P1


def corrected_pass_rate(accepted: float, false_positive: float, false_negative: float) -> float:
    """Return the share of right responses, of which a verifier with errors accepts `accepted`.

    A share outside of what the rates allow is 0 or 1.
    """
    rate = (accepted - false_positive) / (1.0 - false_positive - false_negative)
    return min(1.0, max(0.0, rate))
