"""Ask a judge so that every prompt ends in a reading or in the reason why there is none."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from data_schemas.prompts import Message
from tasks.rewards.judging.form import asked_again
from tasks.rewards.judging.protocol import Judge

ReadT = TypeVar("ReadT")


class NoReading(StrEnum):
    """Why a prompt has no verdict: reasons of abstention."""

    UNAVAILABLE = "judge_unavailable"
    """The judge gave no text: down, too slow, or it refused."""
    UNPARSABLE = "judge_unparsable"
    """It gave text twice, and neither can be read."""


def readings(
    judge: Judge,
    prompts: Sequence[Sequence[Message]],
    read: Callable[[str], ReadT | None],
) -> list[ReadT | NoReading]:
    """Ask every prompt, and once more where the reply cannot be read.

    A judge without any text is not asked again here: it has already tried as long as it may.
    """
    found = _ask(judge, prompts, read)
    unread = [place for place, value in enumerate(found) if value is NoReading.UNPARSABLE]
    if unread:
        second = _ask(judge, [asked_again(prompts[place]) for place in unread], read)
        for place, value in zip(unread, second, strict=True):
            found[place] = value
    return found


def _ask(
    judge: Judge,
    prompts: Sequence[Sequence[Message]],
    read: Callable[[str], ReadT | None],
) -> list[ReadT | NoReading]:
    found: list[ReadT | NoReading] = []
    for _, reply in zip(prompts, judge.ask(prompts), strict=True):
        value = None if reply is None else read(reply)
        missing = NoReading.UNAVAILABLE if reply is None else NoReading.UNPARSABLE
        found.append(missing if value is None else value)
    return found
