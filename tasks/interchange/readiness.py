"""Check before training that the curated data is sufficient for the settings."""

import logging
from collections.abc import Sequence

from data_schemas.demonstrations import Demonstration, Parent
from data_schemas.prompts import Problem
from data_schemas.rl_settings import RLSettings
from tasks.errors import DataError, SettingsError

logger = logging.getLogger(__name__)

MIN_DEMONSTRATIONS = 2
"""One to learn from, one to hold back for validation."""


def fit_phase(settings: RLSettings, problems: Sequence[Problem], where: str) -> RLSettings:
    """Keep the domains of a phase that there are problems of.

    Args:
        settings: of the phase.
        problems: all there are.
        where: name of these settings, for people: 'rl_one'.

    Raises:
        SettingsError: none is left.
    """
    present = {problem.domain for problem in problems}
    domains = {name: share for name, share in settings.domains.items() if name in present}
    if not domains:
        raise SettingsError(
            f"{where}.domains names {', '.join(settings.domains)}, but the problems are of "
            f"{', '.join(sorted(present)) or 'no domain'}. Add one of these, or a source."
        )
    missing = sorted(settings.domains.keys() - domains.keys())
    if missing:
        logger.warning("%s: no problems of %s; trained without", where, ", ".join(missing))
    return settings.model_copy(update={"domains": domains})


def demonstrations_of(parent: Parent, rows: Sequence[Demonstration]) -> list[Demonstration]:
    """Pick what teaches one parent.

    Raises:
        DataError: fewer than two, so nothing can be held back for validation.
    """
    own = [row for row in rows if row.parent is parent]
    if len(own) < MIN_DEMONSTRATIONS:
        raise DataError(
            f"{len(own)} demonstrations for the {parent.value} parent are left after curation; at "
            f"least {MIN_DEMONSTRATIONS} are needed. Add a source that teaches it, or loosen "
            "curation."
        )
    return own
