"""What people, models and verifiers say about rows: done to problems and demonstrations."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from data_schemas.rows import (
    MSC,
    PASS_RATE,
    SUBJECT,
    Annotation,
    Decided,
    GoldDecision,
    Outcome,
    PassRateBand,
    Problem,
    Quarantined,
    Verdict,
    msc_of,
)
from tasks.curation.items import Item, Partition, refuse
from tasks.errors import DataError
from tasks.formats.solve_rates import Answered, Rates
from tasks.gym.protocol import JUDGED

# Do what people decided about doubtful gold answers: keep, drop or correct a problem.
#
# A demonstration goes with its problem: it is dropped too, or verified against the corrected
# answer.

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
    refused: list[Quarantined] = []
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


def decision_rows(decisions: Decisions) -> list[Decided]:
    """Return the table of what was decided, in the order of the problems."""
    return [
        Decided(
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


# Add to problems how often models solve them, and keep those within the bands of their source.
#
# A problem without a pass rate is never one of pass rate 0: where a band asks for the rate, it is
# dropped with a reason of its own. Demonstrations stay, as they do when problems are graded.
# Source: Ring-lite (arXiv 2506.14731) annotates problems with the solve rates of several models
# and drops those that all or none of them solve. Differs: the bands are the user's.

PASS_RATES = "selection"
NO_RATE, OUTSIDE = "no_pass_rate", "outside_band"


def is_rate(text: str) -> bool:
    """Return whether a text is a number from 0 to 1."""
    try:
        return 0.0 <= float(text) <= 1.0  # not a number is neither
    except ValueError:
        return False


def with_rates(facets: Mapping[str, str], problem: Answered, rates: Rates) -> dict[str, str]:
    """Return the facets of a problem with the pass rates of models.

    Args:
        facets: of the source, which may have pass rates as well; measured ones take precedence.
        problem: as it is in the set. Rates of another row or gold answer are not its rates.
        rates: of all problems.
    """
    measured = rates[problem].rates if problem in rates else {}
    pass_rates = {
        f"{PASS_RATE}{model}": str(rate) for model, rate in measured.items() if rate is not None
    }
    return {**facets, **pass_rates}


def fault(facets: Mapping[str, str], bands: Iterable[PassRateBand]) -> tuple[str, str]:
    """Return the reason and its detail if a problem lies outside of a band; ('', '') if in all."""
    for band in bands:
        rate = facets.get(f"{PASS_RATE}{band.model}")
        if not rate:
            return NO_RATE, f"no response of {band.model} to this row and gold answer has a verdict"
        if not band.lowest <= float(rate) <= band.highest:
            return OUTSIDE, f"pass rate {float(rate):.3g} of {band.model}, band {band.limits}"
    return "", ""


# Score demonstrations by the verifier of their problem: what is wrong is not imitated.
#
# A response has to get full marks, as a solved problem of RL does. Without a problem, or if the
# verifier abstains, a response cannot be verified; it is kept and counted as unverified: dialogues
# and advice have no answer to check against. That is a rule and no setting [I]: without them,
# nothing would teach these domains, and `sft.domains` leaves out whole domains. Source: the
# rejection sampling of Ring-lite and DeepSeek-R1, whose long-CoT responses are kept if their final
# answer is right.

VERIFICATION = "verification"
WRONG = "wrong_demonstration"

Score = Callable[[Sequence[Problem], Sequence[str]], Sequence[Verdict]]
"""Score responses[i] as an answer to problems[i]."""


def verify(items: Sequence[Item], score: Score) -> Partition:
    """Quarantine the demonstrations whose response is wrong.

    Args:
        items: problems pass through.
        score: scores responses. Verifiers that need a judge are not asked: their scores compare
            responses, and do not say which is right.

    Returns:
        The other items in order, those that could not be verified without `answers`; the refusals.
    """
    triples = [
        (place, item.answers, item.response)
        for place, item in enumerate(items)
        if item.answers is not None and item.answers.verifier not in JUDGED
    ]
    verdicts = score([problem for _, problem, _ in triples], [response for *_, response in triples])
    results = {place: verdict for (place, *_), verdict in zip(triples, verdicts, strict=True)}
    survivors: list[Item] = []
    refused: list[Quarantined] = []
    for place, item in enumerate(items):
        verdict = results.get(place)
        if verdict is None or verdict.abstained:
            survivors.append(replace(item, answers=None))
        elif verdict.solved:
            survivors.append(item)
        else:
            detail = f"{verdict.reason}: {verdict.detail}" if verdict.detail else verdict.reason
            refused.append(refuse(item, VERIFICATION, Outcome.QUARANTINED, WRONG, detail))
    return survivors, refused


# Give problems of maths the MSC 2020 class of the subject that their source names.


def with_class(facets: Mapping[str, str]) -> dict[str, str]:
    """Return the facets of a problem of maths with its class beside its subject.

    A class that a source gives itself stays. A subject without a class gets none: nothing is
    guessed from the text of a problem.
    """
    result = msc_of(facets.get(SUBJECT, ""))
    return {**facets, MSC: result} if result and not facets.get(MSC) else dict(facets)
