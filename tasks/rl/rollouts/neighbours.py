"""Predict zero-variance groups from a prompt's record and from those of similar prompts.

A prompt's own record is short, and old by the time the prompt is drawn again. Prompts of the same
family (domain, source, verifier, level) were rolled out since: their pass rates tell how the policy
does on such prompts now, also where the prompt itself has no record. And every group tells how far
the policy had moved since the records that predicted it; those of today are taken to be as far
behind.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from scipy.special import expit, logit

from data_schemas.prompts import Domain, Problem
from tasks.algorithms.zero_variance import (
    moved_log_odds,
    shrunken_rate,
    zero_variance_expectation,
)
from tasks.rl.rollouts.history import History, PromptRecord

FAMILY_WEIGHT = 4.0
"""Responses by which a family's pass rate is drawn towards that of its domain."""
NEIGHBOUR_WEIGHT = 8.0
"""Responses that the family counts for next to a prompt's own record [I]. Of 4, 6 and 8 it skips
the fewest prompts for the groups that it avoids (tasks/ablation/README.md)."""
MOVEMENT_WEIGHT = 2.0
"""Groups by which a domain's movement is drawn towards none, and a family's to its domain's [I]."""
Family = tuple[Domain, str, str, int]


def family_of(problem: Problem) -> Family:
    """Return what similar prompts have in common."""
    return problem.domain, problem.source, problem.verifier, problem.level


class Neighbours:
    """Pass rates by family and domain at the beginning of a draw."""

    def __init__(self, problems: Sequence[Problem], history: History) -> None:
        self._problems = problems
        self._history = history

    @cached_property
    def _members(self) -> dict[Family | Domain, list[PromptRecord]]:
        """Records by group of prompts, as they were at the beginning."""
        members: dict[Family | Domain, list[PromptRecord]] = defaultdict(list)
        for problem in self._problems:
            record = self._history.of(problem.id)
            members[problem.domain].append(record)
            members[family_of(problem)].append(record)
        return members

    # Exactly rounded sums do not depend on the order, so a resumed phase decides the same.
    @cached_property
    def _totals(self) -> dict[Family | Domain, tuple[float, float]]:
        """Responses that solved their prompt and responses with a verdict, by group of prompts."""
        return {
            group: (
                math.fsum(record.solved for record in records),
                math.fsum(record.scored for record in records),
            )
            for group, records in self._members.items()
        }

    @cached_property
    def _moved(self) -> dict[Family, float]:
        """Log-odds by which the pass rates of a family are above what its records predict."""
        compared = {group: _compared(records) for group, records in self._members.items()}
        families = {family_of(problem): problem.domain for problem in self._problems}
        return {
            family: moved_log_odds([compared[domain], compared[family]], MOVEMENT_WEIGHT)
            for family, domain in families.items()
        }

    def recorded_rate(self, problem: Problem) -> tuple[float, float] | None:
        """Parameters (solved, failed) of the Beta distribution of the pass rate by the records.

        None if neither the prompt nor another one of its domain has a record.
        """
        if self._totals[problem.domain][1] == 0.0:
            return None
        own = self._history.of(problem.id)
        others = [
            (max(0.0, solved - own.solved), max(0.0, scored - own.scored))
            for solved, scored in (
                self._totals[problem.domain],
                self._totals[family_of(problem)],
            )
        ]
        rate = shrunken_rate(others, FAMILY_WEIGHT)
        return (
            NEIGHBOUR_WEIGHT * rate + own.solved,
            NEIGHBOUR_WEIGHT * (1.0 - rate) + own.scored - own.solved,
        )

    def pass_rate(self, problem: Problem) -> tuple[float, float] | None:
        """Parameters (solved, failed) of the Beta distribution of the pass rate now.

        That by the records, its mean moved as the newest groups of the prompt's domain and family
        were against what their records predicted.
        """
        recorded = self.recorded_rate(problem)
        if recorded is None:
            return None
        total = sum(recorded)
        rate = float(expit(logit(recorded[0] / total) + self._moved[family_of(problem)]))
        return total * rate, total * (1.0 - rate)

    def expected_pass_rate(self, problem: Problem) -> float | None:
        """Pass rate that the records alone predict; None where they predict nothing."""
        recorded = self.recorded_rate(problem)
        return None if recorded is None else recorded[0] / sum(recorded)

    def zero_variance_probability(self, problem: Problem, group_size: int) -> float:
        """Probability that the prompt's next group has zero reward variance; 0 without a record."""
        rate = self.pass_rate(problem)
        return 0.0 if rate is None else zero_variance_expectation(*rate, group_size)


def _compared(records: Sequence[PromptRecord]) -> tuple[float, float, int]:
    """Predicted and observed pass rates of the newest groups, summed, and their number."""
    pairs = [
        (record.expected_pass_rate, record.last_pass_rate)
        for record in records
        if record.expected_pass_rate is not None and record.last_pass_rate is not None
    ]
    return (
        math.fsum(expected for expected, _ in pairs),
        math.fsum(observed for _, observed in pairs),
        len(pairs),
    )
