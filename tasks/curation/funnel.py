"""What became of the rows, in a few lines for the screen."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from data_schemas.rows import Outcome
from tasks.curation.cleaning.personal import ITEMS
from tasks.curation.ingest import GENERATED
from tasks.curation.shards.result import Account

LOSS = 0.05
"""Share of a source or language that may be left out without being named."""
CONTAMINATED = "contaminated"
_SHOWN = 8
"""Sources, languages or reasons in a line."""


def funnel_lines(account: Account, advice: Callable[[str], str]) -> list[str]:
    """Return what was read and kept, why the rest was not, by source, by language, and the losses.

    The last line is missing if no source or language lost more than 5 %. A row that cannot be read
    has no language.

    Args:
        account: of the curation.
        advice: says what to do about a reason.
    """
    totals = account.totals()
    survivors = {source: counts.total() for source, counts in account.kept.items()}
    reasons = sum(account.reasons.values(), Counter[str]())
    lines = [
        f"  kept        {sum(survivors.values()):,} of {totals['items']:,}: {totals['problems']:,} "
        f"problems, {totals['demonstrations']:,} demonstrations, {totals['held_out']:,} held out",
        f"  left out    {reasons.total():,}: {_counts(reasons)}"
        if reasons
        else "  left out    nothing",
        f"  by source   {_shares(survivors, account.read)}",
        f"  by language {_shares(account.kept_languages, account.languages)}",
    ]
    if totals["personal"]:
        lines.append(f"  personal    {_personal(account)}")
    losses = list(_losses(account, advice))
    return lines + ([f"  lost more than {LOSS:.0%}: {' '.join(losses)}"] if losses else [])


def _personal(account: Account) -> str:
    """Say how many items tell something of a person, and what can be done about it."""
    kinds = sum(account.personal.values(), Counter[str]())
    items = kinds.pop(ITEMS)
    return (
        f"{items:,} items tell something of a person ({_counts(kinds)}). curation.personal says "
        "what to do with them: count, mask or quarantine"
    )


def _counts(counts: Counter[str]) -> str:
    parts = [f"{name} {count:,}" for name, count in counts.most_common(_SHOWN)]
    return ", ".join([*parts, *(["..."] if len(counts) > _SHOWN else [])])


def _shares(parts: Mapping[str, int], totals: Mapping[str, int]) -> str:
    largest = sorted(totals, key=lambda name: -totals[name])
    shares = [f"{name} {parts.get(name, 0):,} of {totals[name]:,}" for name in largest[:_SHOWN]]
    return ", ".join([*shares, *(["..."] if len(largest) > _SHOWN else [])])


def _losses(account: Account, advice: Callable[[str], str]) -> Iterator[str]:
    """Name every source and language that lost much, with its most frequent reason.

    What overlaps with held-out problems is no loss of a source: its own problems are held out. What
    the project generates has faults on purpose, about which nobody has to do anything.
    """
    own = {source: account.read[source] for source in account.read if source not in GENERATED}
    of_source = {
        source: account.refused[source, Outcome.DROPPED]
        + account.refused[source, Outcome.QUARANTINED]
        for source in own
    }
    for totals, refused in (
        (own, of_source),
        (account.languages if own else {}, account.refused_languages),
    ):
        for name in sorted(totals):
            reasons = Counter(refused.get(name, {}))
            del reasons[CONTAMINATED]
            if reasons.total() <= LOSS * totals[name]:
                continue
            ((reason, count),) = reasons.most_common(1)
            yield (
                f"{name} {reasons.total():,} of {totals[name]:,}, {count:,} as {reason}. "
                f"{advice(reason)}"
            )
