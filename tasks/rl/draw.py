"""Which prompt comes next: an endless, seeded order that a position alone restores."""

from collections.abc import Mapping, Sequence

import numpy as np

from data_schemas.prompts import Domain, Problem
from tasks.errors import DataError


class PromptStream:
    """Prompts in a seeded order: domains by weight, each domain reshuffled on every pass.

    The prompt at a position depends on the problems, the weights and the seed only, so
    a resumed run neither skips nor repeats one.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        weights: Mapping[Domain, float],
        seed: int,
        position: int = 0,
    ) -> None:
        self._weights = {domain: weights[domain] for domain in sorted(weights)}
        self._problems = {
            domain: [problem for problem in problems if problem.domain is domain]
            for domain in self._weights
        }
        empty = [domain.value for domain, rows in self._problems.items() if not rows]
        if empty:
            raise DataError(
                f"no problems of domain {', '.join(empty)} are left for this phase. Remove it from "
                "the phase's domains, or loosen the grading band that dropped them."
            )
        self._seed = seed
        self._taken = dict.fromkeys(self._weights, 0)
        self.position = 0
        for _ in range(position):
            self._next_domain()

    def take(self, count: int) -> list[Problem]:
        """Return the next prompts and move on."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Problem:
        domain = self._next_domain()
        rows = self._problems[domain]
        lap, index = divmod(self._taken[domain] - 1, len(rows))
        order = np.random.default_rng([self._seed, lap, list(Domain).index(domain)])
        return rows[int(order.permutation(len(rows))[index])]

    def _next_domain(self) -> Domain:
        """The domain that is furthest behind its share."""
        self.position += 1
        total = sum(self._weights.values())
        domain = max(
            self._weights,
            key=lambda name: self._weights[name] / total * self.position - self._taken[name],
        )
        self._taken[domain] += 1
        return domain
