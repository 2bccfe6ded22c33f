"""The advantage estimators, and the advantages of a step by that of its phase."""

import torch

from data_schemas.rl_settings import AdvantageSettings, RLSettings
from tasks.algorithms import names
from tasks.algorithms.advantages.protocol import Advantage
from tasks.algorithms.losses import table as losses
from tasks.errors import DataError
from tasks.plugins import ChoiceTable

ADVANTAGES = ChoiceTable(Advantage, names.ADVANTAGES)


def name_of(settings: RLSettings) -> str:
    """Return the name of the estimator of a phase: that of its loss, or as it was chosen.

    Raises:
        SettingsError: as `find`.
    """
    chosen = ADVANTAGES.choose(settings.advantage, "advantage")
    return losses.find(settings.loss).advantage if chosen.follows_loss else settings.advantage.kind


def find(settings: RLSettings) -> Advantage:
    """Return the estimator of a phase, with its settings.

    Raises:
        SettingsError: there is none of that name, a user's own is not of the form, or a setting is
            not one of its own.
    """
    chosen = ADVANTAGES.choose(settings.advantage, "advantage")
    if not chosen.follows_loss:
        return chosen
    return ADVANTAGES.choose(AdvantageSettings(kind=name_of(settings)), "loss.kind: its advantage")


def estimate(
    settings: RLSettings,
    scores_PG: torch.Tensor,
    penalties_PG: torch.Tensor,
    valid_PG: torch.Tensor,
) -> torch.Tensor:
    """Compute the advantages of a step [P, G] with the estimator of its phase.

    Raises:
        DataError: the estimator returned another shape, or a number that is not finite.
    """
    floor = settings.zero_variance.std_floor
    advantages_PG = find(settings).estimate(scores_PG, penalties_PG, valid_PG, std_floor=floor)
    if advantages_PG.shape != scores_PG.shape or not bool(advantages_PG.isfinite().all()):
        raise DataError(
            f"advantage {name_of(settings)} returned {tuple(advantages_PG.shape)} with "
            f"{int((~advantages_PG.isfinite()).sum())} values that are not finite; it must return "
            f"{tuple(scores_PG.shape)} finite ones"
        )
    return advantages_PG.masked_fill(~valid_PG, 0.0)
