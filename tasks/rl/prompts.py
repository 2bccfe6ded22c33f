"""Which prompts a step draws: an endless seeded stream, the curriculum, and what records predict.

Curriculum: Compass-Thinker (arXiv 2508.08909) trains in stages of different difficulty; it gives
neither their number nor the thresholds. Pass rates are those of the start model, as graded; a
problem without one is in every band.

Records: every group with verdicts updates its prompt's record; older groups decay, because the
policy changes. Grading gives the first record. It predicts the response lengths (length-aware
scheduling, CompassMax) and, with the records of similar prompts, whether the next group has
zero variance: a prompt's own record is short, and old by the time the prompt is drawn again.
Prompts of the same family (domain, source, verifier, level) were rolled out since: their pass rates
tell how the policy does on such prompts now, also where the prompt itself has no record. And every
group tells how far the policy had moved since the records that predicted it; those of today are
taken to be as far behind.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scipy.special import expit, logit

from data_schemas.frozen_model import FrozenModel
from data_schemas.pass_rates import GradedProblem
from data_schemas.rows import Domain, Problem
from tasks.algorithms.mixture import MixtureStream
from tasks.algorithms.zero_variance import (
    moved_log_odds,
    shrunken_rate,
    zero_variance_expectation,
)
from tasks.errors import DataError

PLATEAU_STEPS = 20
"""Steps without a better training accuracy after which the next band begins."""


class CurriculumPosition(FrozenModel):
    """Position of a phase in its curriculum."""

    number: int = 0
    best: float = -1.0
    """Best share solved in a step with this band."""
    since: int = 0
    """Steps since then."""


def in_band(
    problem: Problem, bands: Sequence[tuple[float, float]], stage: CurriculumPosition
) -> bool:
    """True if the problem is in the current band; always without a curriculum."""
    if not bands or not isinstance(problem, GradedProblem) or problem.pass_rate is None:
        return True
    low, high = bands[stage.number]
    return low <= problem.pass_rate < high


def after_step(
    stage: CurriculumPosition, solved_share: float, num_bands: int
) -> CurriculumPosition:
    """Advance when the accuracy no longer rises; the last band has no end."""
    if solved_share > stage.best:
        return stage.model_copy(update={"best": solved_share, "since": 0})
    if stage.since + 1 >= PLATEAU_STEPS and stage.number + 1 < num_bands:
        return CurriculumPosition(number=stage.number + 1)
    return stage.model_copy(update={"since": stage.since + 1})


FADING = 0.5
"""Decay of an older record when a new group arrives."""
GRADED_WEIGHT = 4.0
"""Weight of a graded pass rate in responses: the default of GradingSettings.samples."""
MAX_SKIPS = 8
"""A prompt is rolled out again after this many skips, because the policy has changed."""


class PromptRecord(FrozenModel):
    """The record of one prompt."""

    solved: float = 0.0
    scored: float = 0.0
    """Decayed number of responses with a verdict."""
    mean_tokens: float = 0.0
    skips: int = 0
    """Times in a row it was drawn and skipped."""
    flat_groups: int = 0
    """Its newest groups in a row that were all right or all wrong."""
    last_pass_rate: float | None = None
    """Pass rate of the newest group; None before the first one."""
    expected_pass_rate: float | None = None
    """What earlier records, of this prompt and of similar ones, predicted for the newest group;
    None if there were none."""


class PromptHistory:
    """Records of all prompts; plain data, so that it is committed with the state of a run."""

    def __init__(self, records: Mapping[str, PromptRecord]) -> None:
        self._records = dict(records)

    @classmethod
    def graded(cls, problems: Iterable[Problem]) -> "PromptHistory":
        """Start from grading results; problems that were not graded have no record."""
        return cls(
            {
                problem.id: PromptRecord(
                    solved=GRADED_WEIGHT * problem.pass_rate,
                    scored=GRADED_WEIGHT,
                    mean_tokens=problem.mean_tokens,
                    flat_groups=int(problem.pass_rate in (0.0, 1.0)),
                )
                for problem in problems
                if isinstance(problem, GradedProblem) and problem.pass_rate is not None
            }
        )

    def of(self, problem_id: str) -> PromptRecord:
        """The record of a prompt; an empty one if it was never seen."""
        return self._records.get(problem_id, PromptRecord())

    def remember(
        self,
        problem_id: str,
        solved: float,
        scored: int,
        lengths: Sequence[int],
        expected: float | None = None,
    ) -> None:
        """Update the record with a group; a group without verdicts changes the lengths only.

        Args:
            problem_id: of the prompt.
            solved: responses that solved it, after any correction for the verifier's errors.
            scored: responses with a verdict.
            lengths: tokens of its responses.
            expected: pass rate that the records predicted before the group.
        """
        old = self.of(problem_id)
        mean = sum(lengths) / len(lengths) if lengths else old.mean_tokens
        measured = old.mean_tokens > 0.0
        is_flat = not 0.0 < solved < scored
        # Without `skips`: the prompt was rolled out, so they count from 0 again.
        self._records[problem_id] = PromptRecord(
            solved=FADING * old.solved + solved,
            scored=FADING * old.scored + scored,
            mean_tokens=FADING * old.mean_tokens + (1.0 - FADING) * mean if measured else mean,
            flat_groups=(old.flat_groups + 1) * is_flat if scored else old.flat_groups,
            last_pass_rate=solved / scored if scored else old.last_pass_rate,
            expected_pass_rate=expected if scored else old.expected_pass_rate,
        )

    def skipped(self, problem_id: str) -> None:
        """Count one more draw that was not rolled out."""
        old = self.of(problem_id)
        self._records[problem_id] = old.model_copy(update={"skips": old.skips + 1})

    def predicted_tokens(self, problems: Sequence[Problem]) -> list[float | None]:
        """Expected mean length of a response, from the prompt's own record, else from its domain's.

        None if the whole domain has no record.
        """
        own = [self.of(problem.id).mean_tokens for problem in problems]
        lengths: dict[Domain, list[float]] = {}
        for problem, tokens in zip(problems, own, strict=True):
            if tokens > 0.0:
                lengths.setdefault(problem.domain, []).append(tokens)
        typical = {domain: sum(values) / len(values) for domain, values in lengths.items()}
        return [
            tokens if tokens > 0.0 else typical.get(problem.domain)
            for problem, tokens in zip(problems, own, strict=True)
        ]

    def records(self) -> dict[str, PromptRecord]:
        """All records, to be committed."""
        return dict(self._records)


@dataclass(frozen=True, slots=True)
class PromptRuling:
    """What becomes of an offered prompt."""

    reason: str = ""
    """'' for a prompt to roll out, else why it is skipped."""
    probability: float = 1.0
    """With which it was to be rolled out."""


@dataclass(frozen=True, slots=True)
class PromptDraw:
    """Result of one draw."""

    problems: list[Problem]
    """Prompts to roll out."""
    probabilities: list[float]
    """With which each of them was kept."""
    passed_over: list[tuple[Problem, PromptRuling]]
    """Skipped prompts, with the reason."""


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

    def take(self, count: int, rule: Callable[[Problem], PromptRuling] | None = None) -> PromptDraw:
        """Draw `count` prompts and advance the position.

        Args:
            count: prompts wanted.
            rule: rules on every prompt that is offered. Once every prompt was offered, the
                following ones are kept for certain, so that a draw always ends.
        """
        draw = PromptDraw([], [], [])
        offered = 0
        while len(draw.problems) < count:
            problem = self._next()
            rules = rule is not None and offered < self.num_problems
            ruling = rule(problem) if rule and rules else PromptRuling()
            if ruling.reason:
                draw.passed_over.append((problem, ruling))
            else:
                draw.problems.append(problem)
                draw.probabilities.append(ruling.probability)
            offered += 1
        return draw

    def _next(self) -> Problem:
        domain, index = self._order.take()
        return self._problems[domain][index]


FAMILY_WEIGHT = 4.0
"""Responses by which a family's pass rate is drawn towards that of its domain."""
NEIGHBOUR_WEIGHT = 8.0
"""Responses that the family counts for next to a prompt's own record [I]. Of 4, 6 and 8 it skips
the fewest prompts for the groups that it avoids (docs/evidence/earlier/README.md)."""
MOVEMENT_WEIGHT = 2.0
"""Groups by which a domain's movement is drawn towards none, and a family's to its domain's [I]."""
Family = tuple[Domain, str, str, int]


def family_of(problem: Problem) -> Family:
    """Return what similar prompts have in common."""
    return problem.domain, problem.source, problem.verifier, problem.level


class PromptNeighbours:
    """Pass rates by family and domain at the beginning of a draw."""

    def __init__(self, problems: Sequence[Problem], history: PromptHistory) -> None:
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

    @cached_property
    def domain_rates(self) -> dict[Domain, float]:
        """Pass rate of every domain by the records, drawn towards 1/2 where there are few."""
        domains = dict.fromkeys(problem.domain for problem in self._problems)
        return {name: shrunken_rate([self._totals[name]], FAMILY_WEIGHT) for name in domains}

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
