"""How well the zero-variance groups of recorded phases could be foreseen, by rule.

A ledger is played again: before each draw, rules that know the draws before it predict which groups
will have zero variance. Only what was rolled out is judged: where the threshold left out what the
rule of today foresaw, no rule can show that it foresees it too.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from rich.table import Table
from scipy.special import expit, logit

from data_schemas.ledgers import AgentLedgerRow, GroupOutcome, LedgerRow
from data_schemas.pass_rates import GradedProblem
from tasks.algorithms.zero_variance import (
    discounted_beta,
    fit_logistic,
    ranking_quality,
    zero_variance_expectation,
)
from tasks.rl.prompts import GRADED_WEIGHT, PromptHistory, PromptNeighbours, family_of

FLAT = (
    GroupOutcome.ZERO_VARIANCE_PARTIAL,
    GroupOutcome.ZERO_VARIANCE_NOISE,
    GroupOutcome.ZERO_VARIANCE_JUDGED,
    GroupOutcome.ZERO_VARIANCE_TRAINED,
    GroupOutcome.ZERO_VARIANCE_IDLE,
)
EVEN = (1.0, 1.0)
"""Flat and mixed groups of a family before its first: a uniform Beta prior."""
RECENT = 0.97
"""Decay of the flat groups of a family or domain, by group: about the last 33 count."""
Group = tuple[LedgerRow, int]
"""A group that was rolled out, and its responses with a verdict."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """How well one rule foresaw the zero-variance groups of a phase."""

    rule: str
    groups: int
    ranking: float | None
    """Area under the ROC curve; None where all groups or none had zero variance."""
    brier: float
    """Mean squared error of the probability; 0 without groups."""


class Records:
    """The rule of today: the records of a prompt and of its family, moved by what was learned."""

    name = "records of prompt and family"

    def __init__(self, problems: Sequence[GradedProblem]) -> None:
        self._problems = {problem.id: problem for problem in problems}
        self._history = PromptHistory.graded(problems)

    def predict(self, draw: Sequence[Group]) -> list[float]:
        """Predict the groups of a draw, and learn from them."""
        neighbours = PromptNeighbours([*self._problems.values()], self._history)
        predictions = []
        for row, scored in draw:
            problem = self._problems[row.problem_id]
            predictions.append(neighbours.zero_variance_probability(problem, scored))
            expected = neighbours.expected_pass_rate(problem)
            self._history.remember(problem.id, row.solved, scored, [], expected)
        return predictions


class Posterior:
    """MoPPS: the discounted Beta posterior of the prompt alone, grading as its first group."""

    def __init__(self, problems: Sequence[GradedProblem], decay: float) -> None:
        self.name, self._decay = f"MoPPS, decay {decay:g}", decay
        self._believed = {problem.id: (1.0, 1.0) for problem in problems}
        for problem in problems:
            if problem.pass_rate is not None:
                self._learn(problem.id, GRADED_WEIGHT * problem.pass_rate, GRADED_WEIGHT)

    def predict(self, draw: Sequence[Group]) -> list[float]:
        """Predict the groups of a draw, and learn from them."""
        predictions = [
            zero_variance_expectation(*self._believed[row.problem_id], scored)
            for row, scored in draw
        ]
        for row, scored in draw:
            self._learn(row.problem_id, row.solved, scored)
        return predictions

    def _learn(self, problem: str, solved: float, scored: float) -> None:
        before = self._believed[problem]
        self._believed[problem] = discounted_beta(before, solved, scored - solved, self._decay)


class PromptRegression:
    """One model of all prompts: a logistic regression on what is known of them before a draw.

    Source: the shared model of GPS (2602.01970), which predicts from an embedding and the last
    batch. Differs: the inputs are counts and lengths, the other two rules' predictions among them.
    """

    name = "one model of all prompts"

    def __init__(self, problems: Sequence[GradedProblem]) -> None:
        self._problems = {problem.id: problem for problem in problems}
        self._rules = Records(problems), Posterior(problems, 1.0)
        self._lately: dict[object, tuple[float, float]] = {}
        self._inputs: list[list[float]] = []
        self._flat: list[float] = []

    def predict(self, draw: Sequence[Group]) -> list[float]:
        """Predict the groups of a draw, and learn from them."""
        chances = [rule.predict(draw) for rule in self._rules]
        inputs = [
            [1.0, *map(_log_odds, features), *self._describe(self._problems[row.problem_id])]
            for (row, _), features in zip(draw, zip(*chances, strict=True), strict=True)
        ]
        predictions = chances[0]
        if self._flat and draw:
            weights_F = fit_logistic(np.array(self._inputs), np.array(self._flat))
            predictions = expit(np.array(inputs) @ weights_F).tolist()
        self._inputs += inputs
        for row, scored in draw:
            flat = float(_is_flat(row, scored))
            self._flat.append(flat)
            problem = self._problems[row.problem_id]
            for key in (family_of(problem), problem.domain):
                before = self._lately.get(key, EVEN)
                self._lately[key] = discounted_beta(before, flat, 1.0 - flat, RECENT)
        return predictions

    def _describe(self, problem: GradedProblem) -> list[float]:
        """How often family and domain were flat lately; lengths; how one-sided grading was."""
        lately = [self._lately.get(key, EVEN) for key in (family_of(problem), problem.domain)]
        one_sided = 0.0 if problem.pass_rate is None else (2.0 * problem.pass_rate - 1.0) ** 2
        lengths = math.log1p(problem.mean_tokens), math.log1p(len(problem.prompt_text))
        return [*(math.log(flat / mixed) for flat, mixed in lately), *lengths, one_sided]


def _log_odds(chance: float) -> float:
    # 0 and 1 have no log-odds; 1e-3 is far below what a few hundred groups can tell apart.
    return float(logit(min(max(chance, 1e-3), 1.0 - 1e-3)))


Predict = Callable[[Sequence[Group]], list[float]]


def foresee(
    phases: Sequence[Sequence[LedgerRow]], problems: Sequence[GradedProblem]
) -> list[list[Foresight]]:
    """Judge every rule on every phase; what it knows of the first it has in the second.

    Args:
        phases: rows of their ledgers, in the order of training.
        problems: that all phases draw from, as graded before the first.
    """
    records, shared = Records(problems), PromptRegression(problems)
    posteriors = [Posterior(problems, decay) for decay in (1.0, 0.5)]
    rules: dict[str, Predict] = {rule.name: rule.predict for rule in (records, *posteriors, shared)}
    ids = {problem.id for problem in problems}
    return [_judge(rules, [*_draws(rows, ids)]) for rows in phases]


def foresight_table(judgements: Sequence[Foresight]) -> Table:
    """Print a line per rule."""
    title = "Zero-variance groups foreseen, of those that were rolled out"
    table = Table(title=title, title_justify="left", box=None)
    for head in ("rule", "groups", "AUC", "Brier score"):
        table.add_column(head, justify="left" if head == "rule" else "right")
    for one in judgements:
        ranking = "" if one.ranking is None else f"{one.ranking:.3f}"
        table.add_row(one.rule, f"{one.groups:,}", ranking, f"{one.brier:.3f}")
    return table


def _judge(rules: dict[str, Predict], draws: Sequence[Sequence[Group]]) -> list[Foresight]:
    occurred = [_is_flat(row, scored) for draw in draws for row, scored in draw]
    judgements = []
    for name, predict in rules.items():
        predicted = [chance for draw in draws for chance in predict(draw)]
        errors = [(chance - hit) ** 2 for chance, hit in zip(predicted, occurred, strict=True)]
        ranking = ranking_quality(predicted, occurred)
        judgements.append(
            Foresight(name, len(occurred), ranking, sum(errors) / max(1, len(errors)))
        )
    return judgements


def _draws(rows: Sequence[LedgerRow], ids: set[str]) -> Iterator[list[Group]]:
    """Yield the groups of prompts, each draw's together: those with two verdicts or more."""
    ordered = sorted(rows, key=lambda row: (row.step, row.round))
    for _, draw in groupby(ordered, key=lambda row: (row.step, row.round)):
        groups = [(row, row.rollouts - row.abstained) for row in draw if _is_prompt(row)]
        yield [(row, scored) for row, scored in groups if scored > 1 and row.problem_id in ids]


def _is_prompt(row: LedgerRow) -> bool:
    """Whether a row is a group of the stream, and was finished."""
    of_stream = not (isinstance(row, AgentLedgerRow) and row.parent)
    return of_stream and row.outcome is not GroupOutcome.IN_FLIGHT


def _is_flat(row: LedgerRow, scored: int) -> bool:
    if row.outcome is GroupOutcome.SURPLUS:
        return row.solved in (0, scored)
    return row.outcome in FLAT
