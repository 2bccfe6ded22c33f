"""The policy losses by name: a built-in one is a file and a line here."""

import torch

from data_schemas.rl_settings import LossSettings, PolicyLoss
from tasks.algorithms.losses import (
    cispo,
    dapo,
    dppo,
    dr_grpo,
    espo,
    gmpo,
    grpo,
    gspo,
    luspo,
    sapo,
)
from tasks.algorithms.losses.protocol import Loss, Plan, StepTokens, StepTotals
from tasks.algorithms.token_budget import apply_budget, kept_tokens
from tasks.plugins import Table, load

LOSSES: Table[Loss] = Table(
    {
        "espo": espo.LOSS,
        "gspo": gspo.LOSS,
        "grpo": grpo.LOSS,
        "dr_grpo": dr_grpo.LOSS,
        "dapo": dapo.LOSS,
        "cispo": cispo.LOSS,
        "sapo": sapo.LOSS,
        "gmpo": gmpo.LOSS,
        "luspo": luspo.LOSS,
        "dppo": dppo.TOTAL_VARIATION,
        "dppo_kl": dppo.BINARY_KL,
    },
    lambda reference: load(reference, Loss),
)
CLIP_RANGES = {
    PolicyLoss.GSPO: (3e-4, 4e-4),
    PolicyLoss.GRPO: (0.2, 0.2),
    PolicyLoss.DR_GRPO: (0.2, 0.2),
    PolicyLoss.DAPO: (0.2, 0.28),
    PolicyLoss.CISPO: (0.2, 0.28),
    PolicyLoss.ESPO: (0.2, 0.2),
    PolicyLoss.SAPO: (0.2, 0.2),
    PolicyLoss.GMPO: (0.4, 0.4),
    PolicyLoss.LUSPO: (2e-3, 2.5e-3),
    PolicyLoss.DPPO: (0.2, 0.2),
    PolicyLoss.DPPO_KL: (0.05, 0.05),
}
"""(below, above) of each paper; CISPO has no lower bound, SAPO none. ESPO's is a token's, as in
GRPO, of which a group's follows; eq. 8 (`clip_scale`) reads none."""
OTHER_ORDER = 2.0
"""A width that is so many times another one is for another kind of ratio."""


def find(settings: LossSettings) -> Loss:
    """Return the loss that is chosen.

    Raises:
        SettingsError: there is none of that name, or a user's own is not of the form of a loss.
    """
    return LOSSES.find(settings.kind, "loss.kind")


def unusual_widths(settings: LossSettings) -> list[str]:
    """Say that a loss has the default widths where its paper's are of another order."""
    default = (LossSettings().clip_low, LossSettings().clip_high)
    widths = (settings.clip_low, settings.clip_high)
    if widths != default or settings.kind not in CLIP_RANGES:
        return []
    low, high = published = CLIP_RANGES[PolicyLoss(settings.kind)]
    pairs = zip(widths, published, strict=True)
    if all(1.0 / OTHER_ORDER < one / other < OTHER_ORDER for one, other in pairs):
        return []
    return [
        f"loss.clip_low {widths[0]:g} and loss.clip_high {widths[1]:g} are those of GRPO; of "
        f"loss.kind '{settings.kind}' {low:g} and {high:g} are published"
    ]


def whole_step(mask_NT: torch.Tensor, token_budget: int = 0) -> StepTotals:
    """Treat these rows as the whole step, trained in one update."""
    lengths_N = mask_NT.sum(dim=1)
    return StepTotals(
        num_sequences=len(mask_NT),
        num_tokens=int(lengths_N.sum()),
        max_new_tokens=int(lengths_N.max()) if len(lengths_N) else 0,
        updates=(torch.arange(len(mask_NT)),),
        seed=0,
        token_budget=token_budget,
    )


def plan(
    settings: LossSettings,
    entropy_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    *,
    vocabulary: int,
    step: StepTotals | None = None,
) -> Plan:
    """Compute the plan of the selected loss for the tokens of a step.

    Args:
        entropy_NT: full-vocabulary entropy under pi_old, nats.
        mask_NT: response tokens.
        step: None treats the rows as the whole step.
    """
    step = whole_step(mask_NT) if step is None else step
    tokens = StepTokens(entropy_NT, mask_NT, vocabulary, step)
    whole = find(settings).plan(tokens, settings)
    if step.token_budget == 0:
        return whole
    return apply_budget(whole, mask_NT, kept_tokens(mask_NT, step, settings.truncate_last), step)
