"""The contract of verifiers and the code they share.

A verdict is a score in [0, 1] with its reason, or an abstention with its reason. A score of 0 means
that the response is wrong or made its own verification impossible (`response_fault`). A failure on
our side is an abstention, not a score of 0.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from data_schemas.rollouts import ResponseScore, ScoringRequest
from data_schemas.rows import THINK_CLOSE, THINK_OPEN, Message, Problem
from data_schemas.verdicts import Verdict, abstain, response_fault, scored
from tasks.errors import SettingsError
from tasks.plugins import attribute, load

TURN_BREAK = "\u241e"
"""Between the turns of an episode, in the text that its verifier reads (SYMBOL FOR RECORD
SEPARATOR)."""
TURN_CUT = "\u2404"
"""Behind the last turn of an episode that the limit of tokens has cut (SYMBOL FOR END OF
TRANSMISSION)."""
CONTROL = "0"
"""A harmless response. If a verifier fails on a response but not on this one to the same problem,
the response caused the failure."""
MAX_ANSWER_CHARACTERS = 200_000
"""About 50,000 tokens after the thinking; verifiers do not read longer answers."""


class Gold(BaseModel):
    """Content of `Problem.answer`; every verifier has its own subclass."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


GoldT = TypeVar("GoldT", bound=Gold)


class Verifier(Protocol):
    """Scores one response to one problem.

    Contract: the same arguments give the same verdict; the verifier reads `Problem.answer`,
    `Problem.language`, the text after the thinking, and the request where a verdict depends on it;
    a malformed `Problem.answer` is an abstention.
    """

    def __call__(self, problem: Problem, response: str) -> Verdict: ...


class Game(Protocol):
    """A verifier of a user's own with its environment: the policy answers in several turns."""

    def observe(self, problem: Problem, turns: Sequence[str]) -> tuple[Message, ...] | None:
        """Answer the last turn; None ends the episode. See `Environment`, environments/table.py."""
        ...

    def verify(self, problem: Problem, response: str) -> Verdict:
        """Score the episode, whose turns `split_turns` gives; see `Verifier`."""
        ...


class GroupVerifier(Protocol):
    """Scores all responses to one problem relative to each other, one verdict each, in order."""

    def __call__(self, problem: Problem, responses: Sequence[str]) -> list[Verdict]: ...


@dataclass(frozen=True, slots=True)
class OwnVerifier:
    """A verifier of a user's own; picklable, because a worker loads its file itself."""

    reference: str

    def __call__(self, problem: Problem, response: str) -> Verdict:
        """Score a response.

        Raises:
            SettingsError: as `tasks.plugins.load`.
        """
        game = find_game(self.reference)
        verify = load(self.reference, Verifier) if game is None else game.verify
        return verify(problem, response)


def find_game(reference: str) -> Game | None:
    """Return what a reference names if it has an environment; None for a plain verifier.

    Raises:
        SettingsError: as `tasks.plugins.load`.
    """
    if not hasattr(attribute(reference), "observe"):
        return None
    return load(reference, Game)


def own_verifier(reference: str) -> OwnVerifier:
    """Return the verifier that a reference names, once it is seen to be one.

    Raises:
        SettingsError: as `tasks.plugins.load`.
    """
    if find_game(reference) is None:
        load(reference, Verifier)
    return OwnVerifier(reference)


def own_entry(reference: str) -> "Entry":
    """Return the entry of the verifier that a reference names, with the flags that it declares.

    Raises:
        SettingsError: as `tasks.plugins.load`, or a flag is neither True nor False.
    """
    # What is pinned cannot change while a process runs, and is looked up for every row.
    return _pinned_entry(reference) if "@" in reference else _own_entry(reference)


def _own_entry(reference: str) -> "Entry":
    verify, code = own_verifier(reference), attribute(reference)

    def declared(flag: str) -> bool:
        value = getattr(code, flag, False)
        if not isinstance(value, bool):
            place = reference.partition("@")[0]
            raise SettingsError(f"{place}: {flag} is {value!r}; use True or False")
        return value

    return Entry(
        verify,
        judged=declared("judged"),
        signed=declared("signed"),
        value_gold=declared("value_gold"),
    )


_pinned_entry = cache(_own_entry)


def verifiers_of(problems: Iterable[Problem]) -> frozenset[str]:
    """Name the verifiers of some problems."""
    return frozenset(problem.verifier for problem in problems)


class Scorer(Protocol):
    """Scores responses as they finish; `tasks.gym.scoring.service.ScoringService` in a phase."""

    def submit(self, item: ScoringRequest) -> None:
        """Accept one finished response; may block while too many are waiting."""
        ...

    def gather(self) -> dict[tuple[str, int], ResponseScore]:
        """Wait for everything submitted and return it by (group, sample)."""
        ...

    def check_canaries(self, verifiers: Collection[str]) -> None:
        """Let these verifiers score answers with known verdicts; EngineError if one is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A verifier and how the scoring service runs it."""

    verify: Verifier
    timeout_s: float = 10.0
    """Time limit for one response, beyond which there is no verdict: CPU seconds in a worker,
    wall-clock seconds in a thread."""
    in_worker: bool = True
    """Run in a process that can be killed. False for verifiers that use processes or the network
    themselves: they run in a thread, which can only be abandoned."""
    verify_group: GroupVerifier | None = None
    """Used instead of `verify` when all responses of a group are available."""
    calls: Callable[[], int] | None = None
    """Number of prompts this thread has sent to the judge; None for verifiers without a judge."""
    runs_gold: bool = False
    """The gold answer is a program's tests or an environment's records: with other characters in
    it, even of a telephone number, it is another task."""
    judged: bool = False
    """Scores are opinions that compare responses: equal ones mean 'alike', not 'right' or 'wrong'.
    A user's own verifier declares it as an attribute."""
    needs_judge: bool = False
    """The judge of the settings scores; without one, problems of this verifier are refused."""
    signed: bool = False
    """Verdicts 1 and 0 are the rewards +1 and -1 under `rewards.maths = rule`. A user's own
    verifier declares it as an attribute."""
    value_gold: bool = False
    """The gold is `{"value": text}`, a final value in mathematical writing, with its numbers as the
    problem's language writes them; curation refuses values that no response can state. A user's
    own verifier declares it as an attribute."""


def failure_verdict(name: str, error: str, message: str, *, by_response: bool = False) -> Verdict:
    """Return the verdict for a verifier's failure: none, or 0 if the response caused it."""
    verdict = response_fault if by_response else abstain
    return verdict(f"verifier_error:{name}:{error}", message[:200])


def answer_part(response: str) -> str | None:
    """Return the text after `</think>`; None if thinking never ended or nothing follows.

    A response without a think tag is returned as a whole. One with a second `<think>` or `</think>`
    has no answer: servers show what follows the first `</think>`, and a policy that is paid for
    what follows the last could answer twice.

    Args:
        response: with what the prompt has already said of it (`tasks.engines.chat.opening_of`), so
            that a thought that a chat template opens is open here.
    """
    if max(response.count(THINK_OPEN), response.count(THINK_CLOSE)) > 1:
        return None
    _, _, answer = response.rpartition(THINK_CLOSE)
    if THINK_OPEN in answer or not answer.strip():
        return None
    return answer.strip()


def split_turns(response: str) -> list[str]:
    """Return the policy's turns of an episode; a response outside of one is a single turn."""
    return response.removesuffix(TURN_CUT).split(TURN_BREAK)


def is_cut(response: str) -> bool:
    """Say whether the limit of tokens has cut the last turn of an episode."""
    return response.endswith(TURN_CUT)


def join_turns(turns: Sequence[str], *, cut: bool = False) -> str:
    """Join the policy's turns to the text that a verifier reads.

    The characters between and behind them are taken out of the turns: a turn cannot forge another
    one, nor its own end.

    Args:
        turns: in order.
        cut: the limit of tokens has cut the last one, and its environment has to hear it.
    """
    texts = (turn.replace(TURN_BREAK, "").replace(TURN_CUT, "") for turn in turns)
    return TURN_BREAK.join(texts) + (TURN_CUT if cut else "")


def check_against_gold(
    problem: Problem, response: str, gold_type: type[GoldT], check: Callable[[GoldT, str], Verdict]
) -> Verdict:
    """Check the response against the gold; abstain with `bad_gold` if that cannot be read."""
    try:
        gold = gold_type.model_validate_json(problem.answer)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "answer"
        return abstain("bad_gold", f"{problem.id}, Problem.answer, {where}: {first['msg']}")
    return check(gold, response)


def verify_answer(
    problem: Problem, response: str, gold_type: type[GoldT], check: Callable[[GoldT, str], Verdict]
) -> Verdict:
    """Read the gold, extract the answer and check the answer against the gold.

    Abstains with `bad_gold` if `Problem.answer` cannot be read; scores 0 with `no_answer` if the
    response has no answer part.
    """

    def check_answer(gold: GoldT, response: str) -> Verdict:
        answer = answer_part(response)
        if answer is None:
            return scored(0.0, "no_answer", "no text after the only thought")
        if len(answer) > MAX_ANSWER_CHARACTERS:
            return scored(0.0, "too_long", f"{len(answer)} characters")
        return check(gold, answer)

    return check_against_gold(problem, response, gold_type, check_answer)
