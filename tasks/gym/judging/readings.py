"""Ask a judge and parse its replies; a prompt without a readable reply gets a reason."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from data_schemas.rows import Message
from tasks.gym.judging.comparison_prompt import retry_prompt
from tasks.gym.judging.protocol import Judge

ReadT = TypeVar("ReadT")


class NoReading(StrEnum):
    """Reasons for an abstention: why a prompt has no verdict."""

    UNAVAILABLE = "judge_unavailable"
    """The judge returned no text: it is down, too slow, or refused."""
    UNPARSABLE = "judge_unparsable"
    """The judge returned text twice, and neither reply could be parsed."""


def readings(
    judge: Judge,
    prompts: Sequence[Sequence[Message]],
    read: Callable[[str], ReadT | None],
) -> list[ReadT | NoReading]:
    """Ask every prompt, and ask once more if the reply cannot be parsed.

    A prompt without any reply is not repeated here: the judge has already retried it.
    """
    result = _ask(judge, prompts, read)
    unread = [place for place, value in enumerate(result) if value is NoReading.UNPARSABLE]
    if unread:
        second = _ask(judge, [retry_prompt(prompts[place]) for place in unread], read)
        for place, value in zip(unread, second, strict=True):
            result[place] = value
    return result


def _ask(
    judge: Judge,
    prompts: Sequence[Sequence[Message]],
    read: Callable[[str], ReadT | None],
) -> list[ReadT | NoReading]:
    results: list[ReadT | NoReading] = []
    for _, reply in zip(prompts, judge.ask(prompts), strict=True):
        value = None if reply is None else read(reply)
        missing = NoReading.UNAVAILABLE if reply is None else NoReading.UNPARSABLE
        results.append(missing if value is None else value)
    return results
