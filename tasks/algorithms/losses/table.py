"""The policy losses, those of pairs, and the plan of the selected one for the tokens of a step."""

import torch

from data_schemas.rl_settings import LossSettings, PairLossSettings
from tasks.algorithms import names
from tasks.algorithms.losses.protocol import Loss, PairLoss, StepTokens, StepTotals, TokenPlan
from tasks.plugins import ChoiceTable

LOSSES = ChoiceTable(Loss, names.LOSSES)
PAIR_LOSSES = ChoiceTable(PairLoss, names.PAIR_LOSSES)


def find(settings: LossSettings) -> Loss:
    """Return the loss that is chosen, with its settings.

    Raises:
        SettingsError: there is none of that name, a user's own is not of the form of a loss, or
            a setting is not one of its own.
    """
    return LOSSES.choose(settings, "loss")


def find_pair_loss(settings: PairLossSettings) -> PairLoss:
    """Return the loss of pairs that is chosen, with its settings; errors as of `find`."""
    return PAIR_LOSSES.choose(settings, "loss")


def whole_step(mask_NT: torch.Tensor) -> StepTotals:
    """Treat these rows as the whole step, trained in one update."""
    lengths_N = mask_NT.sum(dim=1)
    return StepTotals(
        num_sequences=len(mask_NT),
        num_tokens=int(lengths_N.sum()),
        max_new_tokens=int(lengths_N.max()) if len(lengths_N) else 0,
        updates=(torch.arange(len(mask_NT)),),
        seed=0,
        responses_per_update=len(mask_NT),
    )


def plan(
    settings: LossSettings,
    entropy_NT: torch.Tensor,
    mask_NT: torch.Tensor,
    *,
    vocabulary: int,
    step: StepTotals | None = None,
) -> TokenPlan:
    """Compute the plan of the selected loss for the tokens of a step.

    Args:
        entropy_NT: full-vocabulary entropy under pi_old, nats.
        mask_NT: response tokens.
        step: None treats the rows as the whole step.
    """
    step = whole_step(mask_NT) if step is None else step
    return find(settings).plan(StepTokens(entropy_NT, mask_NT, vocabulary, step))
