"""Check before training that the curated data is sufficient for the settings."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from data_schemas.rl_settings import RLSettings
from data_schemas.rows import Demonstration, Domain, ItemKind, Parent, Problem, QuarantinedItem
from tasks.errors import DataError, SettingsError

logger = logging.getLogger(__name__)

Advice = Callable[[str], str]
MIN_DEMONSTRATIONS = 2
"""One for training and one for validation."""
_OF_OTHER_MODELS = (Parent.JUDGE, Parent.WRITER, Parent.PLANNER)
"""Models that compare, and that write problems."""


def fit_phase(settings: RLSettings, problems: Sequence[Problem], where: str) -> RLSettings:
    """Remove the domains of a phase for which there are no problems.

    Args:
        settings: of the phase.
        problems: all curated problems.
        where: name of these settings in messages: 'rl_one'. Without any problem it has no steps.

    Raises:
        SettingsError: no domain is left, or one to a choice between several.
    """
    if not settings.steps:
        return settings
    if not problems:
        logger.warning("%s: no source has problems to train on; skipped", where)
        return settings.model_copy(update={"steps": 0})
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
    if settings.group_dro and len(domains) == 1:
        raise SettingsError(
            f"{where}.group_dro weighs domains against each other, and the problems leave it "
            f"{', '.join(domains)} alone; set it to 0, or add a source for {', '.join(missing)}"
        )
    return settings.model_copy(update={"domains": domains})


def is_taught(parent: Parent, rows: Iterable[Demonstration]) -> bool:
    """True if there is a demonstration for a parent of the merge."""
    return any(row.parent is parent for row in rows)


def require_cause(
    parent: Parent,
    rows: Iterable[Demonstration],
    refused: Iterable[QuarantinedItem],
    advice: Advice,
) -> None:
    """Refuse to skip a fine-tuning for which there were demonstrations until curation.

    Args:
        parent: of the merge, without a demonstration.
        rows: the demonstrations of other parents.
        refused: what curation left out.
        advice: says what to do about a reason.

    Raises:
        DataError: of a source, all demonstrations were left out; names it and the reason. Which
            parent they were for is not known: an item that was left out says its source only.
    """
    sources = {row.source for row in rows}
    losses: dict[str, Counter[str]] = {}
    for one in refused:
        if one.kind is ItemKind.DEMONSTRATION and one.source not in sources:
            losses.setdefault(one.source, Counter())[one.reason] += 1
    for source, reasons in losses.items():
        ((reason, count),) = reasons.most_common(1)
        raise DataError(
            f"no demonstration for {parent.value} fine-tuning is left, and of {source} all "
            f"{reasons.total()} were left out, {count} of them as {reason}. {advice(reason)}"
        )


def demonstrations_of(parent: Parent, rows: Sequence[Demonstration]) -> list[Demonstration]:
    """Return the demonstrations of one parent; the general ones are all that answer somebody.

    Raises:
        DataError: fewer than two, so that none can be held out for validation.
    """
    if parent is Parent.GENERAL:
        own = [row for row in rows if row.parent not in _OF_OTHER_MODELS]
    else:
        own = [row for row in rows if row.parent is parent]
    if len(own) < MIN_DEMONSTRATIONS:
        raise DataError(
            f"{len(own)} demonstrations for {parent.value} fine-tuning are left after curation; at "
            f"least {MIN_DEMONSTRATIONS} are needed. Add a source for it, or relax the limits of "
            "curation."
        )
    return own


def fit_mixture(
    weights: Mapping[Domain, float], present: Iterable[Domain], parent: Parent
) -> dict[Domain, float]:
    """Remove the domains of a mixture for which a parent has no demonstrations.

    Nothing is left for a parent with none of them: it learns from all its rows.

    Args:
        weights: share of each domain; empty = all rows.
        present: domains of the demonstrations that are trained on.
        parent: whose they are.
    """
    own = set(present)
    fitted = {domain: weight for domain, weight in weights.items() if domain in own}
    if weights.keys() - fitted.keys():
        logger.warning(
            "sft of %s: no demonstrations of %s; trained %s",
            parent.value,
            ", ".join(sorted(weights.keys() - fitted.keys())),
            "without" if fitted else "on all rows once per epoch",
        )
    return fitted
