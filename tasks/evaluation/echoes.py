"""What a text that does no task earns on held-out problems: what a candidate has to exceed.

The best of a hundred texts on the twenty problems that chose it is the best by luck: "longest
option" solved 13 of 20 choices of which it solves 38 % in the long run. So problems to train on
choose the text, and the held-out ones score it. The model is compared with it on the same problems.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from data_schemas.arrow import parse_rows
from data_schemas.reports import EchoScore
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from tasks.algorithms.intervals import paired_difference
from tasks.algorithms.suites import per_problem
from tasks.gym.degenerate import (
    CHOICE,
    FREQUENT,
    MAX_PROBLEMS,
    TEXTS,
    Text,
    free_scores,
    frequent_option,
    is_scored,
    spread,
    texts_of,
)
from tasks.gym.protocol import verifiers_of
from tasks.gym.refusal import request_kind
from tasks.gym.table import score_batch

MOST_HELD_OUT = 200
"""Problems of a domain that its text is scored on, evenly spread."""
MOST_CHOICES = 2000
"""Problems to train on whose right options are counted."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What a text earns on a family of problems."""

    echo: EchoScore
    scores: Mapping[str, float]
    """By the id of a problem; problems without a verdict are left out."""


def compare_with_floors(
    floors: Iterable[Floor], samples: Iterable[SampleResult], seed: int
) -> tuple[EchoScore, ...]:
    """Compare a model with the text of every family, on the problems that both have a score of.

    A family without such a problem is not compared.

    Args:
        floors: of the texts.
        samples: of the model.
        seed: of the bootstrap.
    """
    model = {one.problem_id: one.score / one.decided for one in per_problem(samples) if one.decided}
    results: list[EchoScore] = []
    for floor in floors:
        both = [name for name in floor.scores if name in model]
        if not both:
            results.append(floor.echo)
            continue
        one = paired_difference(
            [model[name] for name in both], [floor.scores[name] for name in both], seed=seed
        )
        difference = {"difference": one.mean, "low": one.low, "high": one.high}
        results.append(floor.echo.model_copy(update=difference))
    return tuple(results)


def held_out_echoes(training: Path, held_out: Iterable[Problem]) -> tuple[Floor, ...]:
    """Choose a text for each domain on problems to train on, and score it on held-out ones.

    Args:
        training: table of problems.
        held_out: of any domains; those that need a judge or outside code are left out, and
            requests to refuse or not: a constant is right on one half and wrong on the other.

    Returns:
        By domain, in order of names. A domain that is only held out, as a benchmark is, has the
        best text on its own problems; one without a score is left out.
    """
    few = some_of_each(training, ("domain", "verifier"), MAX_PROBLEMS)
    choice = _chosen(tuple(one.model_dump_json() for one in few))
    domains: dict[str, list[Problem]] = defaultdict(list)
    for problem in held_out:
        if is_scored(problem) and not request_kind(problem):
            domains[f"domain:{problem.domain.value}"].append(problem)
    floors: list[Floor] = []
    for suite, members in sorted(domains.items()):
        texts = _texts(members)
        if any(one.verifier == CHOICE for one in members):
            texts[FREQUENT] = frequent_option(_choices(training) or members)
        names = [choice[suite]] if choice.get(suite) in texts else []
        names = names or [one.text for one in free_scores(members)]
        for name in names:
            floors += _scored(suite, name, texts, spread(members, MOST_HELD_OUT))
    return tuple(floors)


@lru_cache(maxsize=1)  # a run evaluates six models against the same problems
def _chosen(training: tuple[str, ...]) -> Mapping[str, str]:
    problems = [Problem.model_validate_json(row) for row in training]
    return {one.suite: one.text for one in free_scores(problems)}


def _texts(members: Sequence[Problem]) -> dict[str, Text]:
    texts = dict(TEXTS)
    for verifier in verifiers_of(members):
        texts |= texts_of(verifier)
    return texts


def _scored(
    suite: str, name: str, texts: Mapping[str, Text], members: Sequence[Problem]
) -> list[Floor]:
    verdicts = score_batch(members, [texts[name](one) for one in members])
    scores = {
        one.id: verdict.score
        for one, verdict in zip(members, verdicts, strict=True)
        if verdict.score is not None
    }
    if not scores:
        return []
    accuracy = sum(score == 1.0 for score in scores.values()) / len(scores)
    mean = sum(scores.values()) / len(scores)
    echo = EchoScore(suite=suite, text=name, score=mean, accuracy=accuracy, problems=len(members))
    return [Floor(echo, scores)]


def _choices(training: Path) -> list[Problem]:
    """Read the problems with options, at most `MOST_CHOICES`, evenly spread."""
    table = ds.dataset(training)
    column = table.to_table(columns=["verifier"])["verifier"].to_pylist()
    rows = spread([row for row, name in enumerate(column) if name == CHOICE], MOST_CHOICES)
    return parse_rows(
        table.take(pa.array(rows, pa.int64())).to_pylist(), Problem, where=str(training)
    )


def some_of_each(training: Path, columns: tuple[str, str], most: int) -> list[Problem]:
    """Read at most `most` problems of each pair of values of two columns, evenly spread."""
    table = ds.dataset(training)
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    keys = table.to_table(columns=[*columns])
    for row, key in enumerate(zip(*(one.to_pylist() for one in keys.columns), strict=True)):
        rows[key].append(row)
    places = sorted(row for members in rows.values() for row in spread(members, most))
    records = table.take(pa.array(places, pa.int64())).to_pylist()
    return parse_rows(records, Problem, where=str(training))
