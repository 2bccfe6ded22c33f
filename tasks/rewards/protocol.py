"""What a verifier promises, and what is the same for all of them.

A verdict is a score in [0, 1] with its reason, or an abstention with its reason. A score of 0 says
that the response is wrong, or that it made its own judgement impossible (`response_fault`); it
never says that our side was unable to judge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from data_schemas.prompts import Problem
from data_schemas.scoring import Finished, Scored
from data_schemas.verdicts import Verdict, abstain, response_fault, scored
from tasks.errors import EngineError, SettingsError

JUDGED = ("generative_judge", "rubric")
"""Verifiers that need a judge; equal scores of theirs say 'alike', not 'right' or 'wrong'."""
THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"
CONTROL = "0"
"""A response that breaks nothing: a verifier that fails on a response, but not on this one to the
same problem, was broken by the response."""
MAX_ANSWER_CHARACTERS = 200_000
"""About 50 000 tokens after the thinking: nothing that a verifier should have to read."""


class Gold(BaseModel):
    """What `Problem.answer` holds; every verifier has its own subclass."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


GoldT = TypeVar("GoldT", bound=Gold)


class Verifier(Protocol):
    """Judges one response to one problem.

    Contract: the same arguments give the same verdict; nothing but `Problem.answer`,
    `Problem.language` and the text after the thinking is looked at; a malformed `Problem.answer`
    is an abstention.
    """

    def __call__(self, problem: Problem, response: str) -> Verdict: ...


class GroupVerifier(Protocol):
    """Judges all responses to one problem relative to each other, one verdict each, in order."""

    def __call__(self, problem: Problem, responses: Sequence[str]) -> list[Verdict]: ...


class Scorer(Protocol):
    """Judges responses as they finish; `rewards.scoring.service.ScoringService` in production."""

    def submit(self, item: Finished) -> None:
        """Take one finished response; may block while too many wait."""
        ...

    def gather(self) -> dict[tuple[str, int], Scored]:
        """Wait for everything submitted and return it by (group, sample)."""
        ...

    def check_canaries(self) -> None:
        """Judge answers whose verdict is known; a surprise is an EngineError."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A verifier and how the scoring service runs it."""

    verify: Verifier
    timeout_s: float = 10.0
    """For one response; a verifier that needs longer gives no verdict on it. CPU seconds of a
    worker, seconds on the clock of a thread."""
    in_worker: bool = True
    """In a process that can be killed. False for what has processes or a network of its own: it
    runs in a thread, which can only be given up."""
    verify_group: GroupVerifier | None = None
    """Instead, where all responses of a group are at hand."""
    calls: Callable[[], int] | None = None
    """How many prompts this thread has handed to the judge; None for what needs no judge."""


def failed(name: str, error: str, message: str, *, by_response: bool = False) -> Verdict:
    """What a verifier's failure is worth: no verdict, or 0 if the response brought it about."""
    give = response_fault if by_response else abstain
    return give(f"verifier_error:{name}:{error}", message[:200])


def may_be_by_response(error: type[BaseException]) -> bool:
    """True unless the error says that this machine or this installation is at fault."""
    return not issubclass(error, EngineError | SettingsError | OSError | ImportError)


def answer_part(response: str) -> str | None:
    """Return the text after the last `</think>`; None if thinking never ended or nothing follows.

    A response without any think tag is all answer.
    """
    _, _, answer = response.rpartition(THINK_CLOSE)
    if THINK_OPEN in answer or not answer.strip():
        return None
    return answer.strip()


def judge(
    problem: Problem, response: str, gold_type: type[GoldT], check: Callable[[GoldT, str], Verdict]
) -> Verdict:
    """Read the gold, cut out the answer, check one against the other.

    Abstains with `bad_gold` if `Problem.answer` cannot be read; scores 0 with `no_answer` if the
    response has no answer part.
    """
    try:
        gold = gold_type.model_validate_json(problem.answer)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "answer"
        return abstain("bad_gold", f"{problem.id}, Problem.answer, {where}: {first['msg']}")
    answer = answer_part(response)
    if answer is None:
        return scored(0.0, "no_answer", "no text after the thinking")
    if len(answer) > MAX_ANSWER_CHARACTERS:
        return scored(0.0, "too_long", f"{len(answer)} characters")
    return check(gold, answer)
