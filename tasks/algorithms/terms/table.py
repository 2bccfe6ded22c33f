"""The terms that settings list, with their settings."""

from collections.abc import Sequence

from data_schemas.rl_settings import TermSettings
from tasks.algorithms import names
from tasks.algorithms.terms.protocol import Term
from tasks.plugins import ChoiceTable

TERMS = ChoiceTable(Term, names.TERMS)


def find_terms(settings: Sequence[TermSettings]) -> tuple[Term, ...]:
    """Return the terms that are listed, in their order.

    Raises:
        SettingsError: there is none of a name, a user's own is not of the form of a term, or a
            setting is not one of its own.
    """
    return tuple(TERMS.choose(one, f"terms[{place}]") for place, one in enumerate(settings))
