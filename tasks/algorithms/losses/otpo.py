"""Optimal-transport preference optimisation: DPO whose tokens have weights.

Source: OTPO (arXiv 2505.18720, Shopee), read from the authors' code, github.com/Mimasss2/OTPO at
fb909ae, `get_ot_weight` [I: the paper's own equations could not be read]. With states h of the
C tokens of the chosen response and of the R tokens of the rejected one, and d_ij = |h_i - h_j|,
divided by its largest value if that is above 1, the plan G minimises

    sum_ij G_ij d_ij + entropy KL(G | 1) + relaxation (KL(G 1 | 1) + KL(G' 1 | 1))

where KL(x | y) = sum x log(x / y) - x + y. A token's weight is the mass that leaves or reaches it,
times min(C, R) / sum G: both responses then weigh as much as the shorter one has tokens, so that
length alone earns nothing. The loss is DPO's (dpo.py) with these weights on the log-ratios; they
have no gradient.
Differs: the authors divide by the largest distance of the padded batch, in which masked states are
zeros; here padding changes nothing.
Letters: N sequences, T tokens, H hidden, C and R tokens of the chosen and the rejected response.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import Field

from tasks.algorithms.losses.protocol import PairLoss
from tasks.errors import SettingsError

MAX_SWEEPS = 10_000
TOLERANCE = 1e-9
"""Change of a log scaling in the last sweep: the same relative change of the plan."""


class TransportedTokens(PairLoss):
    """Tokens weigh what an unbalanced optimal transport between both responses moves."""

    needs_states: ClassVar[bool] = True

    entropy: float = Field(
        default=1.0,
        gt=0.0,
        le=1e3,
        description="of the plan, in units of distance; OTPO: 1 at 8B, 0.1 at 3B on HelpSteer2",
    )
    relaxation: float = Field(
        default=0.2,
        gt=0.0,
        le=1e3,
        description="price of leaving mass behind, in units of distance; OTPO: 0.2",
    )

    def token_weights(self, mask_NT: torch.Tensor, states: Sequence[torch.Tensor]) -> torch.Tensor:
        """Weigh the tokens of each pair by the transport between its responses.

        Raises:
            SettingsError: the plan does not converge.
        """
        weights_NT = torch.zeros(mask_NT.shape)
        for chosen in range(0, len(states), 2):
            pair = pair_weights(
                states[chosen],
                states[chosen + 1],
                entropy=self.entropy,
                relaxation=self.relaxation,
            )
            for row, one in enumerate(pair, chosen):
                weights_NT[row, mask_NT[row]] = one.float()
        return weights_NT


def pair_weights(
    chosen_CH: torch.Tensor, rejected_RH: torch.Tensor, *, entropy: float, relaxation: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weigh the tokens of two responses [C], [R]; each sums to the length of the shorter one.

    Where all states are the same, or each response has one token, weights are equal.
    """
    distance_CR = torch.cdist(chosen_CH.double(), rejected_RH.double())
    plan_CR = transport_plan(
        distance_CR / distance_CR.max().clamp(min=1.0), entropy=entropy, relaxation=relaxation
    )
    scale = min(plan_CR.shape) / plan_CR.sum()
    return plan_CR.sum(dim=1) * scale, plan_CR.sum(dim=0) * scale


def transport_plan(cost_CR: torch.Tensor, *, entropy: float, relaxation: float) -> torch.Tensor:
    """Solve the unbalanced transport of one unit of mass a token, by Sinkhorn's scalings.

    Source: Chizat et al., arXiv 1607.05816, algorithm 1, with KL: a sweep raises the scalings of
    the balanced problem to relaxation / (relaxation + entropy). In logarithms, so that costs that
    are large beside the entropy do not underflow.

    Args:
        cost_CR: float64, of moving a unit of mass.
        entropy: weight of the plan's entropy.
        relaxation: weight of what the plan leaves behind or adds.

    Raises:
        SettingsError: the scalings still change after MAX_SWEEPS.
    """
    power, kernel_CR = relaxation / (relaxation + entropy), -cost_CR / entropy
    rows_C, columns_R = cost_CR.new_zeros(cost_CR.shape[0]), cost_CR.new_zeros(cost_CR.shape[1])
    for _ in range(MAX_SWEEPS):
        before_C = rows_C
        rows_C = -power * torch.logsumexp(kernel_CR + columns_R, dim=1)
        columns_R = -power * torch.logsumexp(kernel_CR + rows_C[:, None], dim=0)
        if float((rows_C - before_C).abs().max()) < TOLERANCE:
            return torch.exp(kernel_CR + rows_C[:, None] + columns_R)
    raise SettingsError(
        f"the transport of OTPO with entropy {entropy:g} and relaxation {relaxation:g} did not "
        f"converge in {MAX_SWEEPS} sweeps; raise the entropy or lower the relaxation"
    )
