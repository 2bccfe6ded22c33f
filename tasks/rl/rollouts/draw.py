"""Order of prompts: an endless seeded stream that is restored from a position."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from data_schemas.prompts import Domain, Problem
from tasks.errors import DataError


@dataclass(frozen=True, slots=True)
class Drawn:
    """Result of one draw: prompts to roll out, and skipped prompts with the reason."""

    problems: list[Problem]
    passed_over: list[tuple[Problem, str]]


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
        self._orders: dict[Domain, tuple[int, list[int]]] = {}
        self.position = 0
        for _ in range(position):
            self._next_domain()

    @property
    def num_problems(self) -> int:
        """Problems in the stream."""
        return sum(len(rows) for rows in self._problems.values())

    def take(self, count: int, reason_to_pass: Callable[[Problem], str] | None = None) -> Drawn:
        """Draw `count` prompts and advance the position.

        Args:
            count: prompts wanted.
            reason_to_pass: '' for a prompt to roll out, else why it is skipped. Once every prompt
                was offered, the following ones are not skipped, so that a draw always ends.
        """
        drawn = Drawn([], [])
        offered = 0
        while len(drawn.problems) < count:
            problem = self._next()
            reason = reason_to_pass(problem) if reason_to_pass else ""
            if reason and offered < self.num_problems:
                drawn.passed_over.append((problem, reason))
            else:
                drawn.problems.append(problem)
            offered += 1
        return drawn

    def _next(self) -> Problem:
        domain = self._next_domain()
        rows = self._problems[domain]
        lap, index = divmod(self._taken[domain] - 1, len(rows))
        if self._orders.get(domain, (-1, []))[0] != lap:
            order = np.random.default_rng([self._seed, lap, list(Domain).index(domain)])
            self._orders[domain] = (lap, order.permutation(len(rows)).tolist())
        return rows[self._orders[domain][1][index]]

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
