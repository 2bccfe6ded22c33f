"""Draw the held-out suites, before any training.

Whether a problem is drawn depends on a hash of its id and the seed, and not on the position
of its row.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest

from data_schemas.prompts import Domain, Problem
from tasks.curation.items import Item, ticket

Stratum = tuple[str, str]


def hold_out(items: Sequence[Item], per_suite: int, seed: int) -> tuple[list[Item], list[Item]]:
    """Draw up to `per_suite` problems per domain, evenly over its sources and languages.

    At most half of each source and language is drawn, so that problems are left to train
    on. Demonstrations are never drawn.

    Returns:
        (drawn problems, everything else), both in the order of `items`.
    """
    strata: dict[Domain, dict[Stratum, list[Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        if isinstance(item.record, Problem):
            record = item.record
            strata[record.domain][(record.source, record.language)].append(item)
    drawn: set[int] = set()
    for domain in strata:
        shuffled = [
            sorted(group, key=lambda item: ticket("held_out", seed, item.record.id))[
                : len(group) // 2
            ]
            for _, group in sorted(strata[domain].items())
        ]
        turns = [item for turn in zip_longest(*shuffled) for item in turn if item is not None]
        drawn |= {id(item) for item in turns[:per_suite]}
    return (
        [item for item in items if id(item) in drawn],
        [item for item in items if id(item) not in drawn],
    )
