"""Problems whose gold answer is doubtful because several models disagree with it, for people.

Source: Ring-lite (arXiv 2506.14731) verifies answers by models of different size that solve the
problems under the verifier of RL, and by people.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from data_schemas.gold_decisions import Annotation
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from tasks.gym.table import is_judged

OTHER_ANSWER = "the models agree on another answer"
UNSOLVED = "no model solved it"


def find(
    problems: Mapping[str, Problem],
    samples: Mapping[str, Sequence[SampleResult]],
    decided: Collection[str] = (),
) -> list[Annotation]:
    """Find problems that no model solved, or on another answer of which all models agree.

    Those on which the models agree come first. A problem without a verdict for every model is left
    out, and so is one that a judge scores, and every problem if there are fewer than two models.

    Args:
        problems: by id.
        samples: of every model.
        decided: problems that people have decided about.
    """
    by_problem: dict[str, dict[str, list[SampleResult]]] = defaultdict(dict)
    for model, rows in samples.items():
        for row in rows:
            if row.scored:
                by_problem[row.problem_id].setdefault(model, []).append(row)
    doubtful = []
    for name, problem in problems.items():
        by_model = by_problem[name]
        if len(samples) < 2 or by_model.keys() != samples.keys():
            continue
        if name in decided or is_judged(problem):
            continue
        reason = _reason(by_model)
        if reason:
            doubtful.append(
                Annotation(
                    problem=name,
                    source=problem.source,
                    source_row=problem.source_row,
                    reason=reason,
                    question=problem.messages[-1].content,
                    gold=problem.answer,
                    answers={model: dict(_counts(rows)) for model, rows in by_model.items()},
                )
            )
    return sorted(doubtful, key=lambda one: (one.reason != OTHER_ANSWER, one.problem))


def _reason(by_model: Mapping[str, Sequence[SampleResult]]) -> str:
    """Say why a gold answer is doubtful; '' if it is not."""
    favourites = {_favourite(rows) for rows in by_model.values()}
    if len(favourites) == 1 and favourites != {""}:
        right = {row.answer for rows in by_model.values() for row in rows if row.solved}
        if not favourites & right:
            return OTHER_ANSWER
    solved = any(row.solved for rows in by_model.values() for row in rows)
    return "" if solved else UNSOLVED


def _favourite(rows: Sequence[SampleResult]) -> str:
    """Return the answer that a model gave more often than any other; '' if there is none."""
    (first, times), *others = _counts(rows).most_common(2)
    return "" if others and others[0][1] == times else first


def _counts(rows: Sequence[SampleResult]) -> Counter[str]:
    return Counter(row.answer or "" for row in rows)
