"""Every choice that settings name, completed and checked by the table of its kind."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from data_schemas.machine_settings import Choice
from data_schemas.rl_settings import (
    AdvantageSettings,
    LossSettings,
    PairLossSettings,
    SkipSettings,
    TermSettings,
)
from data_schemas.settings import MergeSettings
from tasks import plugins
from tasks.algorithms.advantages.table import ADVANTAGES
from tasks.algorithms.losses.table import LOSSES, PAIR_LOSSES
from tasks.algorithms.merging.table import METHODS
from tasks.algorithms.skips.table import SKIPS
from tasks.algorithms.terms.table import TERMS
from tasks.plugins import ChoiceTable

SettingsT = TypeVar("SettingsT", bound=BaseModel)

TABLES: Mapping[type[Choice], ChoiceTable[Any]] = {
    LossSettings: LOSSES,
    PairLossSettings: PAIR_LOSSES,
    AdvantageSettings: ADVANTAGES,
    MergeSettings: METHODS,
    TermSettings: TERMS,
    SkipSettings: SKIPS,
}


def complete(settings: SettingsT, where: str = "") -> SettingsT:
    """Write the settings that choices have by default beside those that were given.

    Args:
        settings: a group, with groups in it.
        where: dotted name of the group in front of its fields, for messages.

    Raises:
        SettingsError: a choice is not there, is not of the form of its kind, or has no such
            setting; names the setting, and what was probably meant.
    """
    return plugins.complete(settings, TABLES, where)
