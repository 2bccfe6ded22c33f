"""The contract of judges, the record of their calls, and problems that need one."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import Message, Problem
from tasks.errors import SettingsError
from tasks.gym.protocol import JUDGED

# The contract of judges, and the record of their calls.


class JudgeCalls(BaseModel):
    """Calls of a judge so far; a ledger charges the difference of two snapshots."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    asked: int = Field(default=0, ge=0, description="prompts handed over, cached ones not counted")
    failed: int = Field(default=0, ge=0, description="of these, prompts that got no text")
    retried: int = Field(default=0, ge=0, description="further attempts at a prompt already asked")
    cached: int = Field(default=0, ge=0, description="prompts answered from memory")

    def since(self, earlier: "JudgeCalls") -> "JudgeCalls":
        """Return the calls made after `earlier`, a snapshot of the same judge."""
        return JudgeCalls(
            asked=self.asked - earlier.asked,
            failed=self.failed - earlier.failed,
            retried=self.retried - earlier.retried,
            cached=self.cached - earlier.cached,
        )


class Judge(Protocol):
    """Any text model that answers a chat.

    Contract: one reply per prompt, in order; None if the judge returned no text (down, too slow,
    refused), without raising; safe to use from several threads.
    """

    @property
    def name(self) -> str:
        """Return the name of the model, which is recorded with every verdict."""
        ...

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls so far."""
        ...

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Answer every prompt with greedy decoding."""
        ...


# Stands where no judge is set.

NO_JUDGE = (
    "this problem needs a judge and rewards.judge.kind is none. Set it to 'http' with address and "
    "model of an endpoint (vllm serve), or to 'model' with a model directory as address; or leave "
    "problems with verifier generative_judge or rubric out."
)


class NoJudge:
    """Placeholder if no judge is set, so that only problems that need one are refused."""

    @property
    def name(self) -> str:
        """Return the name of the placeholder."""
        return "none"

    @property
    def calls(self) -> JudgeCalls:
        """Return zero calls."""
        return JudgeCalls()

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Refuse every prompt.

        Raises:
            SettingsError: always.
        """
        raise SettingsError(NO_JUDGE)


# Problems that need a judge where none is set: refused before anything is trained for them.


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
    lacking = [problem for problem in problems if problem.verifier in JUDGED]
    if lacking:
        first = lacking[0]
        raise SettingsError(
            f"{where}.kind is none, but {len(lacking)} problems need a judge, first {first.id} "
            f"(verifier {first.verifier}). Set it to 'http' with address and model of an endpoint, "
            f"or to 'model' with a model directory; or leave out the source {first.source}"
        )
