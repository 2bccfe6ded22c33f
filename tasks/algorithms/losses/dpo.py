"""Direct preference optimisation: a right response against a wrong one of the same prompt.

Source: DPO (arXiv 2305.18290) eq. 7; `sigmoid` loss of TRL's DPOTrainer.
Sequences of a batch stand in pairs of numbers, chosen then rejected. A trainer splits a batch into
micro-batches wherever it likes, so the margins are computed first, over the whole batch: given
them, the gradient of the loss is that of a weighted sum of log-probabilities, which adds up over
any split.
Letters: N sequences, T tokens, B pairs; N = 2 B.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from tasks.algorithms.losses.protocol import PairLoss


class EqualTokens(PairLoss):
    """Every response token weighs the same: DPO."""

    def token_weights(self, mask_NT: torch.Tensor, states: Sequence[torch.Tensor]) -> torch.Tensor:
        """Weigh response tokens by 1, others by 0 [N, T]."""
        return mask_NT.float()


def margins(
    logprobs_NT: torch.Tensor, reference_NT: torch.Tensor, weights_NT: torch.Tensor, beta: float
) -> torch.Tensor:
    """Reward of every chosen response minus that of its rejected one [B].

    Args:
        logprobs_NT: under the policy.
        reference_NT: under the model that training started from.
        weights_NT: of the tokens; 0 outside the response, and 1 within it in DPO.
        beta: weight of the log-ratio.
    """
    log_ratios_N = ((logprobs_NT - reference_NT) * weights_NT).sum(dim=1)
    return beta * (log_ratios_N[0::2] - log_ratios_N[1::2])


def loss(margins_B: torch.Tensor) -> torch.Tensor:
    """Mean of -log sigmoid over pairs."""
    return -F.logsigmoid(margins_B).mean()


def weights(margins_B: torch.Tensor, beta: float) -> torch.Tensor:
    """Derivative of `loss` by the weighted sum of every sequence's log-probabilities [N].

    Args:
        margins_B: at the weights that the update starts from.
        beta: as in `margins`.
    """
    slope_B = -beta * torch.sigmoid(-margins_B) / len(margins_B)
    return torch.stack((slope_B, -slope_B), dim=1).flatten()
