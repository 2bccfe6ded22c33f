"""Table of verifiers by name, and the boundary between verifiers and their callers.

An unexpected error in a verifier becomes an abstention named after the error, not a score of 0,
unless the response caused it (`response_fault`).
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import OUTSIDE, Problem
from data_schemas.verdicts import Verdict
from tasks.errors import SettingsError
from tasks.gym import choice, code_tests, extraction, reference_text, refusal
from tasks.gym.environments import shop
from tasks.gym.environments.outside import play
from tasks.gym.instructions import rules
from tasks.gym.judging import comparisons, rubric
from tasks.gym.judging.no_judge import NoJudge
from tasks.gym.maths import final_answer, rule_answer, verdict
from tasks.gym.protocol import (
    CONTROL,
    Entry,
    Verifier,
    failure_verdict,
    own_entry,
    own_verifier,
)
from tasks.gym.tools import bfcl_calls, tool_calls
from tasks.gym.workers import is_ours
from tasks.plugins import Table

_LOG = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")

_MATHS_S = verdict.MAX_CANDIDATES * verdict.TIMEOUT_S
_BUILT_IN = {
    "final_answer": Entry(final_answer.verify, _MATHS_S, signed=True, value_gold=True),
    "rule_answer": Entry(rule_answer.verify, _MATHS_S, signed=True, value_gold=True),
    "choice": Entry(choice.verify),
    "extraction": Entry(extraction.verify),
    "tool_calls": Entry(tool_calls.verify),
    "bfcl_calls": Entry(bfcl_calls.verify),
    "instruction_rules": Entry(rules.verify),
    # The sandbox enforces its own limits on compilation and all runs, at worst twice.
    "code_tests": Entry(code_tests.verify, timeout_s=300.0, in_worker=False, runs_gold=True),
    "reference_text": Entry(reference_text.verify),
    "refusal": Entry(refusal.verify),
    "shop": Entry(shop.verify, runs_gold=True),
    # Has a process of its own, with limits of its own.
    "environment": Entry(play.verify, timeout_s=play.LONGEST_S, in_worker=False, runs_gold=True),
}

# No tables with references: a rubric's criteria are rows, and a row must not name code to run.
PLAIN: dict[str, Verifier] = {name: entry.verify for name, entry in _BUILT_IN.items()}
_IN_WORKERS: dict[str, Verifier] = {
    name: entry.verify for name, entry in _BUILT_IN.items() if entry.in_worker
}


def verify_rule_rubric(problem: Problem, response: str) -> Verdict:
    """Score a rubric of which every criterion names a verifier; it needs no judge."""
    return rubric.verifier(NoJudge(), _IN_WORKERS)(problem, response)


ENTRIES: Table[Entry] = Table(
    {
        **_BUILT_IN,
        "rule_rubric": Entry(verify_rule_rubric),
        "generative_judge": Entry(
            comparisons.verifier(NoJudge()), in_worker=False, judged=True, needs_judge=True
        ),
        "rubric": Entry(
            rubric.verifier(NoJudge(), PLAIN), in_worker=False, judged=True, needs_judge=True
        ),
    },
    own_entry,
)
"""What every verifier declares, and how the scoring service runs it; `binding` adds the judge."""

VERIFIERS: Table[Verifier] = Table(
    {name: entry.verify for name, entry in ENTRIES.items()}, own_verifier
)
"""Every verifier that a problem may name, with default settings; those of a user's own too."""


def listed_entries(table: Table[Entry], own: Sequence[str]) -> dict[str, Entry]:
    """Return the verifiers that rows of others may name: built-in ones, and those that are listed.

    An environment of another library is code that is installed, so it has to be listed as well.

    Args:
        table: bound to the settings.
        own: references, my_file.py:name, and names of the table.

    Raises:
        SettingsError: one is neither, or cannot be loaded.
    """
    entries = {name: entry for name, entry in table.data.items() if name != OUTSIDE}
    return entries | {name: table.find(name, "--verifier") for name in own}


def is_judged(problem: Problem) -> bool:
    """True if equal scores of responses to the problem mean 'alike', not 'right' or 'wrong'.

    False where the verifier does not exist, which scoring refuses.

    Raises:
        SettingsError: the code of a user's own verifier is missing or has changed.
    """
    entry = _entry_of(problem.verifier)
    return entry is not None and entry.judged


def is_signed(problem: Problem) -> bool:
    """True if verdicts 1 and 0 are the rewards +1 and -1 under `rewards.maths = rule`.

    Raises:
        SettingsError: as `is_judged`.
    """
    entry = _entry_of(problem.verifier)
    return entry is not None and entry.signed


def has_value_gold(verifier: str) -> bool:
    """True if the golds of a verifier are `{"value": text}`, a final value in mathematical writing.

    Raises:
        SettingsError: as `is_judged`.
    """
    entry = _entry_of(verifier)
    return entry is not None and entry.value_gold


def _entry_of(verifier: str) -> Entry | None:
    """Return the entry of a verifier with default settings, if there is one."""
    try:
        return ENTRIES[verifier]
    except KeyError:
        return None


def runs_gold(problem: Problem) -> bool:
    """True if the gold answer is a program's tests or an environment's records."""
    entry = ENTRIES.data.get(problem.verifier)
    return entry is not None and entry.runs_gold


def needs_judge(problem: Problem) -> bool:
    """True if only the judge of the settings can score responses to the problem."""
    entry = ENTRIES.data.get(problem.verifier)  # no code of a user's own is bound to the judge
    return entry is not None and entry.needs_judge


def require_judge(judge: JudgeSettings, where: str, problems: Iterable[Problem]) -> None:
    """Refuse problems that only a judge can score.

    Args:
        judge: that scores them.
        where: name of its settings, in the message.
        problems: that will be scored.

    Raises:
        SettingsError: some need a judge, and none is set.
    """
    if judge.kind is not JudgeKind.NONE:
        return
    lacking = [problem for problem in problems if needs_judge(problem)]
    if lacking:
        first = lacking[0]
        raise SettingsError(
            f"{where}.kind is none, but {len(lacking)} problems need a judge, first {first.id} "
            f"(verifier {first.verifier}). Set it to 'http' with address and model of an endpoint, "
            f"or to 'model' with a model directory; or leave out the source {first.source}"
        )


def find_by_verifier(table: Mapping[str, ResultT], problem: Problem) -> ResultT:
    """Look up the entry of the verifier that a problem names.

    Raises:
        SettingsError: there is no such verifier, or it needs a judge and none is set.
    """
    if needs_judge(problem) and problem.verifier not in table:
        raise SettingsError(
            f"{problem.id}: verifier {problem.verifier!r} needs a judge. Set RewardSettings.judge "
            "(kind, address, model), or leave such problems out."
        )
    if problem.verifier not in table:
        others = "one of your own as my_file.py:name"
        advice = f", or {others}" if isinstance(table, Table) else f"; {others} has to be listed"
        raise SettingsError(
            f"{problem.id}: verifier {problem.verifier!r} does not exist. "
            f"Use one of {', '.join(sorted(table))}{advice}."
        )
    return table[problem.verifier]


def score_batch(problems: Sequence[Problem], responses: Sequence[str]) -> list[Verdict]:
    """Score `responses[i]` as an answer to `problems[i]`, in order, in this process.

    Raises:
        SettingsError: a problem names a verifier that does not exist, or the user has to act
            before anything can be scored.
    """
    for problem in problems:
        find_by_verifier(VERIFIERS, problem)
    return [
        _verify_guarded(VERIFIERS[problem.verifier], problem, response)
        for problem, response in zip(problems, responses, strict=True)
    ]


def close() -> None:
    """Stop every process that verifiers have started; they are started again when needed."""
    code_tests.close()
    final_answer.close()
    play.close()


def _verify_guarded(verify: Verifier, problem: Problem, response: str) -> Verdict:
    try:
        return verify(problem, response)
    except SettingsError:
        raise
    except Exception as error:  # noqa: BLE001 - the one boundary: our failure is not the model's
        _LOG.warning("verifier %s failed on %s", problem.verifier, problem.id, exc_info=error)
        at_fault = not is_ours(type(error)) and _scores_control(verify, problem)
        name = type(error).__name__
        return failure_verdict(problem.verifier, name, str(error), by_response=at_fault)


def _scores_control(verify: Verifier, problem: Problem) -> bool:
    """True if the verifier scores CONTROL, so that only the response can have made it fail."""
    if problem.verifier not in ENTRIES or not ENTRIES[problem.verifier].in_worker:
        return False
    try:
        verify(problem, CONTROL)
    except Exception:  # noqa: BLE001 - it fails on any response; the caller logs the error
        return False
    return True
