"""Measure verifier and corrector on held-out problems, before and after RL.

separation   P(accepts | right solution) - P(accepts | wrong one), on the same problem: a
             verifier that rejects every solution of a hard problem has none. The solutions are
             those of the start model, for both models
system       verifier and corrector take turns on some of a model's own solutions, until the
             verifier has accepted one 4 times in a row, at most 10 times; without that, the
             solution that it accepted most often is returned. Its accuracy minus the solver's
harm         share of these solutions, if right, for which the system returns a wrong one
misattributed  share of the system's responses that one reward for the whole trajectory would pay
             against their own correctness; a reward per agent does that to none

Differs: a response without a verdict is no acceptance, and its solution is verified again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import Message, Problem
from tasks.algorithms.intervals import Interval, bootstrap_mean, paired_difference
from tasks.errors import DataError
from tasks.evaluation.respondents import ScoredModel
from tasks.lab.recipes.mars.choices import accepted_at, most_accepted
from tasks.lab.recipes.mars.correctness import says_correct
from tasks.lab.recipes.mars.inputs import corrector_input, verifier_input

ROWS_FILE = "agents.parquet"
OF_A_KIND = 2
"""Right and wrong solutions of a problem that are verified."""
VERDICTS = 4
"""Verdicts of every such solution."""
PLAYED = 4
"""Solutions of a problem that the system works on."""
CALLS = 10
"""Calls of the verifier per solution, at most; as released."""


class AgentRow(FrozenModel):
    """One held-out problem and model; a value is None where it is undefined."""

    problem_id: str
    trained: bool = Field(description="by RL; false: the start model")
    separation: float | None = Field(description="None: all solutions right, or all wrong")
    harm: float | None = Field(description="None: no solution was right")
    system: float
    accepted: float = Field(description="share of solutions that end with an acceptance")
    misattributed: float


class MarsClaim(FrozenModel):
    claim: str
    mean: float
    low: float
    high: float
    by_seed: tuple[float, ...]
    problems: int
    shown: bool | None = Field(description="None: reported only")


@dataclass(slots=True)
class SolutionChain:
    """One solution of the solver, and what verifier and corrector made of it."""

    problem: str
    solutions: list[str]
    """The solver's, then the corrector's."""
    verdicts: list[tuple[str, bool | None]] = field(default_factory=list)
    """The solution, and what was said of it."""

    @property
    def accepted(self) -> bool:
        """Say whether the verifier accepted the last solution often enough."""
        return accepted_at([verdict is True for _, verdict in self.verdicts]) > 0

    @property
    def answer(self) -> str:
        """What the system returns."""
        if self.accepted:
            return self.solutions[-1]
        return most_accepted(
            self.solutions, [text for text, verdict in self.verdicts if verdict is True]
        )

    def misattributed(self, right: Mapping[str, bool]) -> float:
        """Share of all responses whose own correctness is not that of what is returned."""
        own = [right[text] for text in self.solutions]
        own += [verdict is right[text] for text, verdict in self.verdicts]
        return _mean([float(one is not right[self.answer]) for one in own])


def measure(
    before: ScoredModel, after: ScoredModel, problems: Sequence[Problem], samples: int
) -> list[AgentRow]:
    """Measure both models on the same problems and the same solutions.

    Raises:
        DataError: there is no problem.
    """
    if not problems:
        raise DataError("there is no held-out problem on which agents can be measured")
    by_id = {problem.id: problem for problem in problems}
    solutions = before.texts(by_id, samples)
    right = {name: before.right(by_id[name], texts) for name, texts in solutions.items()}
    mine = after.texts(by_id, samples)
    return [
        *_rows(before, by_id, solutions, _separations(before, by_id, solutions, right), False),
        *_rows(after, by_id, mine, _separations(after, by_id, solutions, right), True),
    ]


def claims(parts: Sequence[Sequence[AgentRow]], seed: int) -> list[MarsClaim]:
    """Put the rows of all seeds into the table; the problem is what is resampled.

    Args:
        parts: rows by seed.
        seed: of the bootstrap.
    """
    return [
        line
        for name, (measure, rises) in _CLAIMS.items()
        for line in _lines(name, [_pairs(rows, measure) for rows in parts], seed, rises=rises)
    ]


def markdown(claims: Sequence[MarsClaim]) -> str:
    """Write the table, in points."""
    words = {None: "reported", True: "shown", False: "not shown"}
    lines = [
        f"| {c.claim} | {100 * c.mean:.1f} | [{100 * c.low:.1f}, {100 * c.high:.1f}] "
        f"| {', '.join(f'{100 * one:.1f}' for one in c.by_seed)} | {c.problems} "
        f"| {words[c.shown]} |"
        for c in claims
    ]
    head = ["| claim | points | interval | by seed | problems | |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"


_CLAIMS: dict[str, tuple[str, bool | None]] = {
    "separation": ("separation", True),
    "harm": ("harm", False),
    "system minus solver": ("system", None),
    "accepted solutions": ("accepted", None),
    "paid against their own correctness by one reward": ("misattributed", None),
}
"""Measure of every claim, and whether it is to rise; None: reported only."""
_Pairs = list[tuple[float, float]]


def _pairs(rows: Sequence[AgentRow], measure: str) -> _Pairs:
    """Both models' values, of the problems on which both are defined."""
    values = {(row.problem_id, row.trained): row.model_dump()[measure] for row in rows}
    names = dict.fromkeys(row.problem_id for row in rows)
    both = [(values[name, False], values[name, True]) for name in names]
    return [(old, new) for old, new in both if None not in (old, new)]


def _lines(name: str, parts: Sequence[_Pairs], seed: int, *, rises: bool | None) -> list[MarsClaim]:
    """Both models and their difference; nothing without a problem on which it is defined."""
    parts = [pairs for pairs in parts if pairs]
    pairs = [pair for part in parts for pair in part]
    if not pairs:
        return []
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    seeds = [[_mean([pair[side] for pair in part]) for part in parts] for side in (0, 1)]
    changes = [new - old for old, new in zip(*seeds, strict=True)]
    change = paired_difference(after, before, seed=seed)
    is_shown = None if rises is None else _is_shown(change, changes, rises=rises)
    lines: tuple[tuple[str, Interval, list[float], bool | None], ...] = (
        (f"{name}, before RL", bootstrap_mean(before, seed=seed), seeds[0], None),
        (f"{name}, after RL", bootstrap_mean(after, seed=seed), seeds[1], None),
        (f"{name}, change", change, changes, is_shown),
    )
    return [
        MarsClaim(
            claim=claim,
            mean=interval.mean,
            low=interval.low,
            high=interval.high,
            by_seed=tuple(by_seed),
            problems=len(pairs),
            shown=verdict,
        )
        for claim, interval, by_seed, verdict in lines
    ]


def _is_shown(change: Interval, by_seed: Sequence[float], *, rises: bool) -> bool:
    """Say whether the interval excludes no change and every seed agrees."""
    if rises:
        return change.low > 0.0 and min(by_seed) > 0.0
    return change.high < 0.0 and max(by_seed) < 0.0


def _separations(
    model: ScoredModel,
    problems: Mapping[str, Problem],
    solutions: Mapping[str, Sequence[str]],
    right: Mapping[str, Sequence[bool]],
) -> dict[str, float]:
    """Separation on every problem with solutions of both kinds."""
    origins: dict[str, tuple[str, bool]] = {}
    inputs: dict[str, Problem] = {}
    for name, problem in problems.items():
        kinds = {
            kind: [n for n, one in enumerate(right[name]) if one is kind][:OF_A_KIND]
            for kind in (True, False)
        }
        for kind, places in kinds.items():
            for place in places if kinds[True] and kinds[False] else []:
                key = f"{name}#verifier.{place}"
                origins[key] = name, kind
                messages = verifier_input(problem.messages, solutions[name][place])
                inputs[key] = _with(problem, key, messages)
    accepted: dict[str, dict[bool, list[float]]] = {}
    for key, texts in model.texts(inputs, VERDICTS).items():
        name, kind = origins[key]
        acceptances = [float(says_correct(text) is True) for text in texts]
        accepted.setdefault(name, {True: [], False: []})[kind] += acceptances
    return {
        name: _mean(by_kind[True]) - _mean(by_kind[False]) for name, by_kind in accepted.items()
    }


def _rows(
    model: ScoredModel,
    problems: Mapping[str, Problem],
    solutions: Mapping[str, Sequence[str]],
    separations: Mapping[str, float],
    trained: bool,
) -> list[AgentRow]:
    """Measure what the system makes of a model's own solutions, by problem."""
    by_problem: dict[str, list[SolutionChain]] = {name: [] for name in problems}
    for chain in _play(model, problems, solutions):
        by_problem[chain.problem].append(chain)
    results: list[AgentRow] = []
    for name, chains in by_problem.items():
        texts = sorted({text for chain in chains for text in chain.solutions})
        right = dict(zip(texts, model.right(problems[name], texts), strict=True))
        was = [right[chain.solutions[0]] for chain in chains]
        now = [right[chain.answer] for chain in chains]
        still_right = [after for before, after in zip(was, now, strict=True) if before]
        results.append(
            AgentRow(
                problem_id=name,
                trained=trained,
                separation=separations.get(name),
                harm=1.0 - _mean(still_right) if still_right else None,
                system=_mean(now) - _mean(was),
                accepted=_mean([chain.accepted for chain in chains]),
                misattributed=_mean([chain.misattributed(right) for chain in chains]),
            )
        )
    return results


def _play(
    model: ScoredModel, problems: Mapping[str, Problem], solutions: Mapping[str, Sequence[str]]
) -> list[SolutionChain]:
    """Verify every solution and correct what is reported, until it is accepted."""
    chains = {
        f"{name}#{place}": SolutionChain(name, [text])
        for name, texts in solutions.items()
        for place, text in enumerate(texts[:PLAYED])
    }
    reports: dict[str, str] = {}
    for call in range(CALLS):
        inputs = {
            f"{key}.corrector.{call}": corrector_input(
                problems[chains[key].problem].messages, chains[key].solutions[-1], report
            )
            for key, report in reports.items()
        }
        for key, text in _respond(model, problems, inputs):
            chains[key].solutions.append(text)
        inputs = {
            f"{key}.verifier.{call}": verifier_input(
                problems[chain.problem].messages, chain.solutions[-1]
            )
            for key, chain in chains.items()
            if not chain.accepted
        }
        reports = {}
        for key, text in _respond(model, problems, inputs):
            verdict = says_correct(text)
            chains[key].verdicts.append((chains[key].solutions[-1], verdict))
            if verdict is False:
                reports[key] = text
    return list(chains.values())


def _respond(
    model: ScoredModel, problems: Mapping[str, Problem], prompts: Mapping[str, tuple[Message, ...]]
) -> list[tuple[str, str]]:
    """Ask for one response to every input; the chain's key and the text."""
    inputs = {
        key: _with(problems[key.rpartition("#")[0]], key, messages)
        for key, messages in prompts.items()
    }
    texts = model.texts(inputs, 1)
    return [(key.rsplit(".", 2)[0], text) for key, (text,) in texts.items()]


def _with(problem: Problem, name: str, messages: tuple[Message, ...]) -> Problem:
    return problem.model_copy(update={"id": name, "messages": messages})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
