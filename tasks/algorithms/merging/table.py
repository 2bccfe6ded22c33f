"""The merge methods, and that of the settings."""

from data_schemas.settings import MergeSettings
from tasks.algorithms import names
from tasks.algorithms.merging.protocol import MergeMethod
from tasks.plugins import ChoiceTable

METHODS = ChoiceTable(MergeMethod, names.MERGE_METHODS)


def find(settings: MergeSettings) -> MergeMethod:
    """Return the method that is chosen, with its settings.

    Raises:
        SettingsError: there is none of that name, a user's own is not of the form, or a setting is
            not one of its own.
    """
    return METHODS.choose(settings, "merge")
