"""Order of prompts: an endless seeded stream that is restored from a position."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from data_schemas.prompts import Domain, Problem
from tasks.algorithms.mixture import MixtureStream
from tasks.errors import DataError


@dataclass(frozen=True, slots=True)
class Drawn:
    """Result of one draw: prompts to roll out, and skipped prompts with the reason."""

    problems: list[Problem]
    passed_over: list[tuple[Problem, str]]


class PromptStream:
    """Prompts in a seeded order: domains by weight, each domain reshuffled on every pass."""

    def __init__(
        self,
        problems: Sequence[Problem],
        weights: Mapping[Domain, float],
        seed: int,
        position: int = 0,
    ) -> None:
        self._problems = {
            domain: [problem for problem in problems if problem.domain is domain]
            for domain in sorted(weights)
        }
        sizes = {domain: len(rows) for domain, rows in self._problems.items()}
        empty = [domain.value for domain, size in sizes.items() if not size]
        if empty:
            raise DataError(
                f"no problems of domain {', '.join(empty)} are left for this phase. Remove it from "
                "the phase's domains, or loosen the grading band that dropped them."
            )
        self._order = MixtureStream(sizes, weights, seed, position)

    @property
    def position(self) -> int:
        """Prompts drawn so far."""
        return self._order.position

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
        domain, index = self._order.take()
        return self._problems[domain][index]
