"""What a text that does no task earns on held-out problems: what a candidate has to exceed.

The best of a hundred texts on the twenty problems that chose it is the best by luck: "longest
option" solved 13 of 20 choices of which it solves 38 % in the long run. So problems to train on
choose the text, and the held-out ones score it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from data_schemas.arrow import parse_rows
from data_schemas.reports import EchoScore
from data_schemas.rows import Problem
from tasks.gym.degenerate import TEXTS, Text, free_scores, is_scored, spread, texts_of
from tasks.gym.protocol import verifiers_of
from tasks.gym.refusal import request_kind
from tasks.gym.table import score_batch

MOST_HELD_OUT = 200
"""Problems of a domain that its text is scored on, evenly spread."""


def held_out_echoes(training: Path, held_out: Iterable[Problem]) -> tuple[EchoScore, ...]:
    """Choose a text for each domain on problems to train on, and score it on held-out ones.

    Args:
        training: table of problems.
        held_out: of any domains; those that need a judge or an environment are left out, and
            requests to refuse or not: a constant is right on one half and wrong on the other.

    Returns:
        By domain, in order of names. A domain that is only held out, as a benchmark is, has the
        best text on its own problems; one without a score is left out.
    """
    choice = _chosen(tuple(one.model_dump_json() for one in _sample(training)))
    domains: dict[str, list[Problem]] = defaultdict(list)
    for problem in held_out:
        if is_scored(problem) and not request_kind(problem):
            domains[f"domain:{problem.domain.value}"].append(problem)
    echoes: list[EchoScore] = []
    for suite, members in sorted(domains.items()):
        texts = _texts(members)
        if choice.get(suite) in texts:
            echoes += _scored(suite, choice[suite], texts, spread(members, MOST_HELD_OUT))
        else:
            echoes += free_scores(members)
    return tuple(echoes)


@lru_cache(maxsize=1)  # a run evaluates six models against the same problems
def _chosen(training: tuple[str, ...]) -> Mapping[str, str]:
    problems = [Problem.model_validate_json(row) for row in training]
    return {one.suite: one.text for one in free_scores(problems)}


def _texts(members: Sequence[Problem]) -> Mapping[str, Text]:
    texts = dict(TEXTS)
    for verifier in verifiers_of(members):
        texts |= texts_of(verifier)
    return texts


def _scored(
    suite: str, name: str, texts: Mapping[str, Text], members: Sequence[Problem]
) -> list[EchoScore]:
    verdicts = score_batch(members, [texts[name](one) for one in members])
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    if not scores:
        return []
    accuracy = sum(score == 1.0 for score in scores) / len(scores)
    mean = sum(scores) / len(scores)
    return [EchoScore(suite=suite, text=name, score=mean, accuracy=accuracy, problems=len(members))]


def _sample(training: Path) -> list[Problem]:
    """Read a few problems of each domain and verifier, evenly spread over the table."""
    table = ds.dataset(training)
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    keys = table.to_table(columns=["domain", "verifier"])
    for row, key in enumerate(zip(*(one.to_pylist() for one in keys.columns), strict=True)):
        rows[key].append(row)
    places = sorted(row for members in rows.values() for row in spread(members))
    records = table.take(pa.array(places, pa.int64())).to_pylist()
    return parse_rows(records, Problem, where=str(training))
