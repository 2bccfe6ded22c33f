"""Do what people decided about doubtful gold answers: keep, drop or correct a problem.

A demonstration goes with its problem: it is dropped too, or verified against the corrected
answer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from data_schemas.gold_decisions import Annotation, AppliedDecision, GoldDecision
from data_schemas.rows import Outcome, Problem, QuarantinedItem
from tasks.curation.items import Item, Partition, refuse
from tasks.errors import DataError

STAGE = "annotation"
REASON = "dropped_by_annotator"
CODE_TESTS = "code_tests"
"""Verifier whose gold answers curation completes after decisions were matched."""
STALE = "its raw row or gold answer is another one than people saw"

Decisions = Mapping[str, Annotation]
"""By problem."""


def match(items: Sequence[Item], decisions: Decisions) -> dict[str, str]:
    """Return the problems among the items that are decided, each with what is wrong with it or ''.

    Args:
        items: as their adapters read them.
        decisions: of people.
    """
    results: dict[str, str] = {}
    for item in items:
        one = decisions.get(item.record.id) if isinstance(item.record, Problem) else None
        if one is not None and isinstance(item.record, Problem):
            same = one.source_row == item.record.source_row and _same_gold(one.gold, item.record)
            results[one.problem] = "" if same else STALE
    return results


def _same_gold(answer: str, problem: Problem) -> bool:
    """Compare a gold answer that people saw with the one read; tests were changed in between."""
    if problem.verifier != CODE_TESTS:
        return answer == problem.answer
    try:
        return _without_tests(answer) == _without_tests(problem.answer)
    except (TypeError, ValueError):  # no JSON, or no object
        return False


def _without_tests(gold: str) -> dict[str, object]:
    return {**json.loads(gold), "tests": None, "cases": None}


def check(decisions: Decisions, matched: Mapping[str, str]) -> None:
    """Check that every decision is about a problem that was read.

    Args:
        decisions: of people.
        matched: of all items, see `match`.

    Raises:
        DataError: names the problems that no source has, and those that people saw otherwise.
    """
    unknown = [problem for problem in decisions if problem not in matched]
    faults = [
        *(f"{problem}: no source has this problem" for problem in unknown),
        *(f"{problem}: {fault}" for problem, fault in sorted(matched.items()) if fault),
    ]
    if faults:
        excerpt = "; ".join(faults[:10]) + (
            f"; {len(faults) - 10} more" if len(faults) > 10 else ""
        )
        raise DataError(
            f"{len(faults)} of {len(decisions)} decisions fit no problem: {excerpt}. Remove these "
            "lines, add the source, or have people look again."
        )


def apply(items: Sequence[Item], decisions: Decisions) -> Partition:
    """Drop or correct what people decided; what they keep stays as it is."""
    survivors: list[Item] = []
    refused: list[QuarantinedItem] = []
    for item in items:
        problem = item.record if isinstance(item.record, Problem) else item.answers
        one = decisions.get(problem.id) if problem else None
        if problem is None or one is None or one.decision is GoldDecision.KEEP:
            survivors.append(item)
        elif one.decision is GoldDecision.DROP:
            refused.append(refuse(item, STAGE, Outcome.DROPPED, REASON, f"by {one.who}"))
        else:
            right = problem.model_copy(update={"answer": one.correction})
            is_problem = item.record is problem
            survivors.append(
                replace(item, record=right) if is_problem else replace(item, answers=right)
            )
    return survivors, refused


def decision_rows(decisions: Decisions) -> list[AppliedDecision]:
    """Return the table of what was decided, in the order of the problems."""
    return [
        AppliedDecision(
            problem=one.problem,
            source=one.source,
            source_row=one.source_row,
            decision=one.decision.value,
            gold=one.gold,
            correction=one.correction,
            by=one.by,
            at=one.at.isoformat() if one.at else "",
        )
        for _, one in sorted(decisions.items())
    ]
