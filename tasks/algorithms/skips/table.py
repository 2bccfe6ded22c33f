"""The rules of skips, and that of a phase."""

from data_schemas.rl_settings import RLSettings
from tasks.algorithms import names
from tasks.algorithms.skips.protocol import Skip
from tasks.plugins import ChoiceTable

SKIPS = ChoiceTable(Skip, names.SKIPS)


def find(settings: RLSettings) -> Skip:
    """Return the rule of a phase, with its settings.

    Raises:
        SettingsError: there is none of that name, a user's own is not of the form, or a setting is
            not one of its own.
    """
    return SKIPS.choose(settings.zero_variance.skip, "zero_variance.skip")
