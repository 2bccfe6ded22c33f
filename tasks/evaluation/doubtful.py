"""Problems whose gold answer is doubtful because several models disagree with it, for people.

Source: Ring-lite (arXiv 2506.14731) verifies answers by models of different size that solve the
problems under the verifier of RL, and by people.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.prompts import Problem
from data_schemas.samples import SampleResult
from tasks.store.files import canonical_json, write_bytes

FILE = "annotate.jsonl"
OTHER_ANSWER = "the models agree on another answer"
UNSOLVED = "no model solved it"


class Doubtful(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str = Field(description="its id")
    source: str
    source_row: str
    reason: str
    question: str
    gold: str
    answers: dict[str, dict[str, int]] = Field(
        description="responses per model and answer; '' = no answer, or one that is not counted"
    )
    decision: str = Field(default="", description="for people")


def find(
    problems: Mapping[str, Problem], samples: Mapping[str, Sequence[SampleResult]]
) -> list[Doubtful]:
    """Find problems that no model solved, or on another answer of which all models agree.

    Those on which the models agree come first. A problem without a verdict for every model is left
    out, and so is every problem if there are fewer than two models.

    Args:
        problems: by id.
        samples: of every model.
    """
    by_problem: dict[str, dict[str, list[SampleResult]]] = defaultdict(dict)
    for model, rows in samples.items():
        for row in rows:
            if row.scored:
                by_problem[row.problem_id].setdefault(model, []).append(row)
    found = []
    for name, problem in problems.items():
        told = by_problem[name]
        if len(samples) < 2 or told.keys() != samples.keys():
            continue
        reason = _reason(told)
        if reason:
            found.append(
                Doubtful(
                    problem=name,
                    source=problem.source,
                    source_row=problem.source_row,
                    reason=reason,
                    question=problem.messages[-1].content,
                    gold=problem.answer,
                    answers={model: dict(_counts(rows)) for model, rows in told.items()},
                )
            )
    return sorted(found, key=lambda one: (one.reason != OTHER_ANSWER, one.problem))


def write(found: Sequence[Doubtful], out: Path) -> None:
    """Write the file, one problem per line."""
    write_bytes(out / FILE, b"".join(canonical_json(one) + b"\n" for one in found))


def _reason(told: Mapping[str, Sequence[SampleResult]]) -> str:
    """Say why a gold answer is doubtful; '' if it is not."""
    favourites = {_favourite(rows) for rows in told.values()}
    if len(favourites) == 1 and favourites != {""}:
        right = {row.answer for rows in told.values() for row in rows if row.solved}
        if not favourites & right:
            return OTHER_ANSWER
    solved = any(row.solved for rows in told.values() for row in rows)
    return "" if solved else UNSOLVED


def _favourite(rows: Sequence[SampleResult]) -> str:
    """Return the answer that a model gave more often than any other; '' if there is none."""
    (first, times), *others = _counts(rows).most_common(2)
    return "" if others and others[0][1] == times else first


def _counts(rows: Sequence[SampleResult]) -> Counter[str]:
    return Counter(row.answer or "" for row in rows)
