"""Separate what models are evaluated with from what they are trained on, before any training.

A benchmark (a source with `evaluation`) is held out as a whole. Of other problems, whether one is
drawn depends on a hash of its id and the seed, and not on the position of its row.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import zip_longest

from data_schemas.rows import Outcome, Problem, QuarantinedItem
from tasks.curation.dedup import deduplicate
from tasks.curation.items import Item, Partition, refuse, ticket

STAGE = "split"
REUSED = "a held-out problem has this id; rename the file, or give its rows ids"
Stratum = tuple[str, str, str]
"""Domain, source and language."""


def separate_benchmarks(
    items: Sequence[Item],
) -> tuple[list[Item], list[Item], list[QuarantinedItem]]:
    """Return the problems of benchmarks, all other items, and refusals.

    A demonstration of a benchmark is dropped. Exact duplicates are sought within a benchmark only:
    a question of two benchmarks is asked in both.
    """
    benchmarks: list[Item] = []
    refused = [
        refuse(item, STAGE, Outcome.DROPPED, "evaluation_only", "nothing is trained on a benchmark")
        for item in items
        if item.evaluation and not isinstance(item.record, Problem)
    ]
    problems = [item for item in items if item.evaluation and isinstance(item.record, Problem)]
    for source in sorted({item.source for item in problems}):
        survivors, duplicates = deduplicate(
            [item for item in problems if item.source == source], 1.0
        )
        survivors, reused = without_reused_ids(survivors, benchmarks)
        benchmarks += survivors
        refused += [*duplicates, *reused]
    return benchmarks, [item for item in items if not item.evaluation], refused


def without_reused_ids(items: Sequence[Item], held_out: Sequence[Item]) -> Partition:
    """Quarantine the problems that have the id of a held-out problem."""
    ids = {item.record.id for item in held_out}
    reused = [isinstance(item.record, Problem) and item.record.id in ids for item in items]
    return (
        [item for item, refused in zip(items, reused, strict=True) if not refused],
        [
            refuse(item, STAGE, Outcome.QUARANTINED, "reused_id", REUSED)
            for item, refused in zip(items, reused, strict=True)
            if refused
        ],
    )


class Draw:
    """Draws up to `per_suite` problems per domain, evenly over its sources and languages.

    At most half of each source and language is drawn, so that problems are left to train on. Of
    a stratum only the smallest tickets are kept, so that any number of problems can pass by.
    """

    def __init__(self, per_suite: int, seed: int) -> None:
        self._per_suite = per_suite
        self._seed = seed
        self._seen: Counter[Stratum] = Counter()
        self._smallest: dict[Stratum, list[tuple[str, int]]] = defaultdict(list)

    def add(self, stratum: Stratum, key: str, row: int) -> None:
        """Show a problem: its id, and the number by which it is found again."""
        self._seen[stratum] += 1
        tickets = self._smallest[stratum]
        tickets.append((ticket("held_out", self._seed, key), row))
        if len(tickets) >= 2 * self._per_suite:
            tickets.sort()
            del tickets[self._per_suite :]

    def rows(self) -> set[int]:
        """Return the numbers of the problems that are held out."""
        domains: dict[str, list[list[tuple[str, int]]]] = defaultdict(list)
        for stratum, tickets in sorted(self._smallest.items()):
            domains[stratum[0]].append(sorted(tickets)[: self._seen[stratum] // 2])
        return {
            one[1]
            for strata in domains.values()
            for one in [one for turn in zip_longest(*strata) for one in turn if one is not None][
                : self._per_suite
            ]
        }
