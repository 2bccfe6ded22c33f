"""Sampled responses and their scores: what engines and scorers exchange.

Letters: T tokens of prompt and response, R response tokens, L MoE layers, K experts per token.
Arrays are numpy, so that records cross processes without torch.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import Domain, LanguageTag, Message, Problem, Role
from data_schemas.verdicts import Verdict

SOLVER = "solver"
"""The role in which the policy answers a prompt of the stream; a recipe names the others."""


class AgentTurn(FrozenModel):
    """An input that was made from a response of the agent before.

    Its responses are one group, like those to a prompt of the stream, which is a solver's.
    """

    agent: str = Field(description="the role in which the policy answers")
    number: int = Field(ge=1, description="place in the chain; 1 = first of a turn")
    root: str = Field(description="id of the problem that the chain is about")
    parent: str = Field(description="key of the group whose response it was made from")
    parent_sample: int = Field(ge=0)
    parent_response: str
    parent_solved: bool
    parent_abstained: bool = Field(description="then its own responses have no verdict either")
    problem: Problem = Field(description="what is asked, with its verifier and gold")
    size: int = Field(default=0, ge=0, description="responses; 0 = those of any group")

    @property
    def key(self) -> str:
        """Name its group: unique in a phase, and the same whenever the turn is taken."""
        return turn_key(self.parent, self.agent, self.parent_sample)


def account_of(problem_id: str, agent: str) -> str:
    """Name what a problem's groups of one agent are charged to; the solver's to the problem."""
    return problem_id if agent == SOLVER else f"{problem_id}#{agent}"


def turn_key(parent: str, agent: str, sample: int) -> str:
    """Name the group of a turn."""
    return f"{parent}/{agent}.{sample}"


MISSING_ROUTE = -1
"""Expert id of a row the engine could not record: the trainer's own router decides there."""


class StopReason(StrEnum):
    """Why generation ended."""

    END = "end"
    """The model emitted its end token."""
    LENGTH = "length"
    """The response reached its token limit: it is truncated."""
    STOP = "stop"
    """The response contains a stop string."""
    SEGMENT = "segment"
    """Only a segment was requested: the response continues in a later step."""


@dataclass(frozen=True, slots=True)
class RouterTrace:
    """Expert choices of one sequence, prompt included (R3).

    `experts_TLK` has T-1 rows: the last token is never fed to the model, so it has no route.
    uint8 if no row is missing, else int16 with MISSING_ROUTE rows. Layers are MoE
    layers in model order. Expert ids are logical.
    """

    experts_TLK: NDArray[np.uint8 | np.int16]
    """[T-1, 0, 0] where only the digest is left."""
    digest: str = ""
    """Hash of the routes, where the rank that recorded them has checked and hashed them."""


@dataclass(frozen=True, slots=True)
class KeptSets:
    """The tokens that truncated sampling (top-p, top-k) drew each response token from.

    Sets of different sizes end to end, in the order of the response.
    """

    ids: NDArray[np.int32]
    """Tokens of all sets; each set is in ascending order."""
    counts: NDArray[np.int32]
    """[R] size of every set; 0: the token is an environment's, nothing was drawn."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One response to one prompt, with the policy versions that generated it."""

    problem_id: str
    sample: int
    """Index within the group, 0-based."""
    prompt_tokens: NDArray[np.int32]
    response_tokens: NDArray[np.int32]
    """Includes the end token when stop_reason is END."""
    logprobs: NDArray[np.float32]
    """[R] log-probability of every response token under the sampling distribution."""
    trace: RouterTrace | None
    stop_reason: StopReason
    policy_version: int
    """Policy version that sampled the last token."""
    earlier: tuple[tuple[int, int], ...] = ()
    """(policy version, response tokens) of the segments that older versions sampled, in order."""
    role: str = "solver"
    """Role of a multi-role recipe that generated it (solver, verifier, corrector, questioner
    ...)."""
    sampled: NDArray[np.bool_] | None = None
    """[R] False: the token is an environment's, which the policy read between two of its turns (its
    log-probability is 0); None: all are the policy's."""
    shown: tuple[int, ...] = ()
    """What a recipe showed in its prompt, by numbers of its own; () = the problem's prompt."""
    bare_prompt: NDArray[np.int32] | None = None
    """The problem's own prompt, where the response is trained under that one."""
    kept: KeptSets | None = None
    """What truncated sampling drew from; None: from the whole vocabulary."""

    @property
    def trained_prompt(self) -> NDArray[np.int32]:
        """Prompt that precedes the response in the update."""
        return self.prompt_tokens if self.bare_prompt is None else self.bare_prompt

    @property
    def first_version(self) -> int:
        """Policy version that sampled the first token."""
        return self.earlier[0][0] if self.earlier else self.policy_version

    @property
    def versions_R(self) -> NDArray[np.int32]:
        """Policy version that sampled each response token."""
        versions_R = np.full(len(self.response_tokens), self.policy_version, dtype=np.int32)
        start = 0
        for version, tokens in self.earlier:
            versions_R[start : start + tokens] = version
            start += tokens
        return versions_R

    @property
    def num_sampled(self) -> int:
        """Response tokens of the policy."""
        return len(self.response_tokens) if self.sampled is None else int(self.sampled.sum())

    @property
    def sampled_tokens(self) -> NDArray[np.int32]:
        """Response tokens of the policy, one turn after the other."""
        return self.response_tokens if self.sampled is None else self.response_tokens[self.sampled]


def split_turns(
    tokens_R: NDArray[np.int32], sampled_R: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int32], ...]:
    """Return the tokens of each of the policy's turns: the runs that were sampled."""
    if sampled_R is None:
        return (tokens_R,)
    edges = np.flatnonzero(np.diff(np.pad(sampled_R.astype(np.int8), 1)))
    return tuple(tokens_R[start:end] for start, end in edges.reshape(-1, 2))


@dataclass(frozen=True, slots=True)
class ScoredRollout:
    """A rollout with its verdict."""

    rollout: Rollout
    text: str
    """Decoded response, without special end tokens."""
    verdict: Verdict
    penalty: float
    """Shaping <= 0 (length, repetition); kept separate from correctness."""
    monitored: tuple[float | None, ...] = ()
    """Scores of `rewards.monitor`, in that order; None = the monitor abstained."""


@dataclass(frozen=True, slots=True)
class RolloutGroup:
    """All samples of one prompt: the unit of a group-relative advantage."""

    problem: Problem
    rollouts: tuple[ScoredRollout, ...]


@dataclass(frozen=True, slots=True)
class ScoringRequest:
    """One response, submitted as soon as the rollout engine has finished it."""

    problem: Problem
    group: str
    """Samples with the same key are compared with each other; a prompt may be drawn twice."""
    sample: int
    group_size: int
    tokens: NDArray[np.int32] | str
    """Tokens of the response, end token included; the scorer turns them into text. Or its text."""
    sampled: NDArray[np.bool_] | None = None
    """As `Rollout.sampled`: the verifier reads the policy's turns only."""

    @property
    def content(self) -> tuple[NDArray[np.int32], ...] | str:
        """What is scored: the tokens of each turn, or the text."""
        if isinstance(self.tokens, str):
            return self.tokens
        return split_turns(self.tokens, self.sampled)


@dataclass(frozen=True, slots=True)
class ResponseScore:
    """The result for one response."""

    text: str
    verdict: Verdict
    seconds: float
    """Verifier time of this response; its share if a group is scored as a whole."""
    judge_calls: int


MAX_CHARACTERS = 2**22
"""Longest text of a response that is scored: longer than any model here writes, and short to read
and hash."""


class ScoreRow(FrozenModel):
    """A response with what scores it: a line of a file, or an entry of a request."""

    verifier: str = Field(min_length=1, description="a key of tasks.gym.table.VERIFIERS")
    answer: dict[str, Any] | str = Field(description="what that verifier checks against")
    response: str = Field(max_length=MAX_CHARACTERS)
    id: str = Field(default="", description="of the problem; equal ones in a row are a group")
    prompt: str | tuple[Message, ...] = Field(default="", description="read by judges alone")
    language: LanguageTag = Field(default="en", description="BCP 47 tag of the problem")

    def problem(self, place: int) -> Problem:
        """Return the problem that a verifier is given; a row without an id is alone."""
        prompt = self.prompt
        turns = (Message(role=Role.USER, content=prompt),) if isinstance(prompt, str) else prompt
        text = self.answer if isinstance(self.answer, str) else json.dumps(self.answer)
        return Problem(
            id=self.id or f"row/{place}",
            domain=Domain.OPEN_TEXT,
            language=self.language,
            messages=turns or (Message(role=Role.USER, content=""),),
            verifier=self.verifier,
            answer=text,
            source="api",
            source_row="api",
        )
