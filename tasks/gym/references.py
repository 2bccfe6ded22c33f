"""The response that a gold answer names: a reward that it does not earn is one that nobody can win.

A verifier of a user's own is tried with the row's response, and with each value of its gold answer.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from data_schemas.rows import THINK_CLOSE, THINK_OPEN, Problem
from data_schemas.verdicts import Verdict
from tasks.algorithms.tool_reward import ToolCall
from tasks.gym.protocol import find_game
from tasks.gym.scoring.canaries import own_canaries
from tasks.gym.table import is_judged, runs_gold
from tasks.gym.tools.bfcl_calls import OPTIONAL
from tasks.gym.tools.forms import CALL_CLOSE, CALL_OPEN, FORMS
from tasks.plugins import is_reference

MOST_CHARACTERS = 80
"""Characters of a response in a message."""
PROGRAMS = "code_tests"
Gold = Mapping[str, Any]
Score = Callable[[Sequence[Problem], Sequence[str]], Sequence[Verdict]]
"""Scores responses[i] as an answer to problems[i]."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What the best of a problem's reference responses earns."""

    problem: Problem
    response: str = ""
    verdict: Verdict | None = None
    """None: the problem has no reference, and its reward is unchecked."""
    of_row: bool = False
    """The row has a response of its own."""

    @property
    def solves(self) -> bool:
        """True if the response earns full marks."""
        return self.verdict is not None and self.verdict.solved


def references(problem: Problem) -> tuple[str, ...]:
    """Write the responses of which one has to earn full marks.

    Returns:
        () where the gold names none: a judge's task, rules for the form of a text, an episode, a
        program, whose solutions `code_soundness` runs, and a gold that is no JSON object.
    """
    try:
        gold: object = json.loads(problem.answer)
    except ValueError:
        return ()
    if not isinstance(gold, dict):
        return ()
    values = cast("Gold", gold)
    try:
        if not is_reference(problem.verifier):
            write = _WRITERS.get(problem.verifier)
            return tuple(write(values)) if write else ()
    except (LookupError, TypeError, ValueError, AttributeError):
        return ()  # a gold of another form, at which the verifier abstains
    return () if find_game(problem.verifier) else _values(values)


def try_references(
    problems: Sequence[Problem], responses: Sequence[Sequence[str]], score: Score
) -> list[Trial]:
    """Score what should earn full marks.

    Args:
        problems: of any verifier.
        responses: those of the problem's own row; they are tried beside what the gold names.
        score: scores all texts in one batch.
    """
    texts = [
        () if _is_untried(problem) else (*of_row, *references(problem))
        for problem, of_row in zip(problems, responses, strict=True)
    ]
    pairs = [(problem, text) for problem, of in zip(problems, texts, strict=True) for text in of]
    if not pairs:
        return [Trial(problem) for problem in problems]
    verdicts = iter(score([problem for problem, _ in pairs], [text for _, text in pairs]))
    results: list[Trial] = []
    for problem, of, of_row in zip(problems, texts, responses, strict=True):
        tried = [Trial(problem, text, next(verdicts), of_row=bool(of_row)) for text in of]
        results.append(max(tried, key=_score, default=Trial(problem)))
    return results


def _is_untried(problem: Problem) -> bool:
    """True if one text is no answer, or a judge or the sandbox has to score it.

    Curation runs the solutions of code problems on all rows.
    """
    return is_judged(problem) or runs_gold(problem)


def _score(trial: Trial) -> float:
    """Return what a trial earns; an abstention stands below 0."""
    score = trial.verdict.score if trial.verdict else None
    return -1.0 if score is None else score


def is_lost(trial: Trial) -> bool:
    """True if a response that has to earn full marks does not.

    A value of a gold is a parameter and no reference where a user's own verifier has several, or
    has CANARIES: those then say which answer is right.
    """
    if trial.verdict is None or trial.solves:
        return False
    verifier = trial.problem.verifier
    if trial.of_row or not is_reference(verifier):
        return True
    return len(json.loads(trial.problem.answer)) == 1 and not own_canaries(verifier)


def has_solution(problem: Problem) -> bool:
    """True for a code problem with a solution, which curation runs."""
    return problem.verifier == PROGRAMS and bool(json.loads(problem.answer).get("reference"))


def describe(trial: Trial) -> str:
    """Say what a reference response earns: by which verifier, of which row, and why."""
    problem, verdict = trial.problem, cast("Verdict", trial.verdict)
    score = "no verdict" if verdict.score is None else f"{verdict.score:g}"
    reason = ": ".join(part for part in (verdict.reason, verdict.detail) if part)
    what = "response" if trial.of_row else "reference answer"
    return (
        f"Verifier {verifier_name(problem)} gives {score} ({reason}) to the {what} "
        f"{trial.response[:MOST_CHARACTERS]!r} of row {problem.id}"
    )


def verifier_name(problem: Problem) -> str:
    """Name a verifier without the digest of its code."""
    return problem.verifier.partition("@")[0]


def likely_cause(trial: Trial) -> str:
    """Say why a reference response probably earns no full marks, and what to do."""
    verdict, verifier = cast("Verdict", trial.verdict), verifier_name(trial.problem)
    if verdict.score is None:
        return f"{verifier} cannot read such a gold answer, or fails on it; correct either."
    if verdict.score > 0:
        return (
            "full marks are 1.0, and nothing below counts as solved. Let the verifier give 1.0 to "
            "what is right."
        )
    if not is_reference(trial.problem.verifier):
        return (
            f"answer is no gold of {verifier}. Correct the column of the answer, or name the "
            "verifier that compares such answers."
        )
    if trial.of_row:
        return (
            f"{verifier} reads another form than the responses have, or another gold than answer."
        )
    return (
        f"{verifier} compares with something else than answer. If that is no reference, give the "
        "mapping a response, or the verifier's file CANARIES with a right answer."
    )


def _value(gold: Gold) -> list[str]:
    value = gold["value"]
    if "\\boxed" in value:
        return [value]
    unit = f" {gold['unit']}" if gold.get("unit") else ""
    return [f"\\boxed{{{value}}}", f"{value}{unit}", f"${value}$"]


def _calls(gold: Gold) -> list[str]:
    calls = [ToolCall(one["name"], one["parameters"]) for one in gold["calls"]]
    form = gold.get("form", "lines")
    if form in FORMS:
        return [FORMS[form].write(calls) if calls else "No call."]
    lines = "\n".join(json.dumps({"name": c.name, "parameters": c.parameters}) for c in calls)
    if form == "lines":
        return [lines or "No call."]
    answer = "<response>\nDone.\n</response>" if gold.get("answer") else ""
    block = f"{CALL_OPEN}\n{lines}\n{CALL_CLOSE}" if calls else ""
    return ["\n".join(part for part in (f"{THINK_OPEN}I see.{THINK_CLOSE}", block, answer) if part)]


def _bfcl(gold: Gold) -> list[str]:
    calls = [
        ToolCall(
            one["name"],
            {
                name: _first(allowed)
                for name, allowed in one["parameters"].items()
                if allowed[0] != OPTIONAL
            },
        )
        for one in gold["calls"]
    ]
    return [FORMS[gold.get("form") or "pythonic"].write(calls) if calls else "No call."]


def _first(allowed: Any) -> Any:
    """Return the first value that is allowed; in an object, of each entry."""
    value = allowed[0] if isinstance(allowed, list) and allowed else allowed
    if not isinstance(value, dict):
        return value
    entries = cast("Gold", value).items()
    return {name: _first(one) for name, one in entries if not _may_be_missing(one)}


def _may_be_missing(allowed: Any) -> bool:
    return isinstance(allowed, list) and OPTIONAL in allowed


def _refusal(gold: Gold) -> list[str]:
    return ["I'm sorry, but I can't help with that." if gold["refuse"] is True else "Yes, gladly."]


def _values(gold: Gold) -> tuple[str, ...]:
    """Write every value of a gold by itself, and all of them as JSON."""
    texts = [
        text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        for value in gold.values()
        for text in (value, *(cast("list[object]", value) if isinstance(value, list) else ()))
    ]
    return tuple(dict.fromkeys((*texts, json.dumps(dict(gold), ensure_ascii=False))))


_WRITERS: Mapping[str, Callable[[Gold], Sequence[str]]] = {
    "final_answer": _value,
    "rule_answer": _value,
    "choice": lambda gold: [
        text for alias in gold["correct"] for text in (alias, f"Answer: {alias}")
    ],
    "extraction": lambda gold: [json.dumps(gold["fields"], ensure_ascii=False)],
    "tool_calls": _calls,
    "bfcl_calls": _bfcl,
    "reference_text": lambda gold: [gold["reference"]],
    "refusal": _refusal,
}
