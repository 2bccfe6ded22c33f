"""RSPO: tokens whose experts the router has come to score otherwise move the policy less.

Source: arXiv 2510.23027. With the experts that a token was routed to, gamma = exp(-mean over layers
of the mean over experts of |log s - log s_old|), without gradient and at least 0.8, and the policy
ratio is multiplied by it before it is clipped and aggregated. s: the router's score of an expert,
before the chosen ones are renormalised.
Differs: the scores are of the replayed experts, whatever the router would choose now; a token
without a route has gamma 1. For a negative advantage the lower clip is reached earlier.
Letters: R response tokens, L MoE layers, K experts per token, E experts.
"""

import torch

from data_schemas.rollouts import MISSING_ROUTE
from data_schemas.routing import Routing

OLD_SCORES = "old_router_scores"
"""Column [N, T, L, K] of a batch whose update weighs by the shift: log s before the step."""
SHIFT = "router_shift"
"""Column [N, T] that a trainer adds for the loss: log gamma, not yet bounded."""


def chosen_scores(
    logits_RE: torch.Tensor, experts_RK: torch.Tensor, routing: Routing
) -> torch.Tensor:
    """Return log s of a layer's chosen experts [R, K]; 0 where a token has no route."""
    wide_RE, missing_RK = logits_RE.float(), experts_RK == MISSING_ROUTE
    if routing.score == "sigmoid":
        scores_RE = torch.nn.functional.logsigmoid(wide_RE)
    else:
        scores_RE = wide_RE.log_softmax(dim=1)
    found_RK = scores_RE.gather(1, experts_RK.masked_fill(missing_RK, 0))
    return found_RK.masked_fill(missing_RK, 0.0)


def log_shift(scores_RLK: torch.Tensor, old_RLK: torch.Tensor) -> torch.Tensor:
    """Return log gamma [R], unbounded and without gradient."""
    return -(scores_RLK - old_RLK).detach().abs().mean(dim=2).mean(dim=1)
