"""Separate what models are evaluated with from what they are trained on, before any training.

A benchmark (a source with `evaluation`) is held out as a whole. Of other problems, whether one is
drawn depends on a hash of its id and the seed, and not on the position of its row.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest

from data_schemas.prompts import Domain, Problem
from data_schemas.quarantine import Outcome, Quarantined
from tasks.curation.dedup import deduplicate
from tasks.curation.items import Item, Sieved, refuse, ticket

STAGE = "split"
Stratum = tuple[str, str]


def separate_benchmarks(items: Sequence[Item]) -> tuple[list[Item], list[Item], list[Quarantined]]:
    """Return the problems of benchmarks, all other items, and refusals.

    A demonstration of a benchmark is dropped. Exact duplicates are sought within a benchmark only:
    a question of two benchmarks is asked in both.
    """
    exams: list[Item] = []
    refused = [
        refuse(item, STAGE, Outcome.DROPPED, "evaluation_only", "nothing is trained on a benchmark")
        for item in items
        if item.evaluation and not isinstance(item.record, Problem)
    ]
    asked = [item for item in items if item.evaluation and isinstance(item.record, Problem)]
    for source in sorted({item.source for item in asked}):
        kept, found = deduplicate([item for item in asked if item.source == source], 1.0)
        kept, reused = without_reused_ids(kept, exams)
        exams += kept
        refused += [*found, *reused]
    return exams, [item for item in items if not item.evaluation], refused


def without_reused_ids(items: Sequence[Item], held_out: Sequence[Item]) -> Sieved:
    """Quarantine the problems that have the id of a held-out problem."""
    taken = {item.record.id for item in held_out}
    reused = [isinstance(item.record, Problem) and item.record.id in taken for item in items]
    detail = "a held-out problem has this id; rename the file, or give its rows ids"
    return (
        [item for item, refused in zip(items, reused, strict=True) if not refused],
        [
            refuse(item, STAGE, Outcome.QUARANTINED, "reused_id", detail)
            for item, refused in zip(items, reused, strict=True)
            if refused
        ],
    )


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
