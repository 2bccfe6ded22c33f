"""Count the judge's prompts per thread, so that each is charged to the response it was for."""

import threading
from collections.abc import Sequence

from data_schemas.prompts import Message
from tasks.gym.judging.protocol import Judge, JudgeCalls


class MeteredJudge:
    """A Judge that forwards to another one and counts prompts.

    Prompts answered from the cache count too, so that the charge of a response does not depend on
    the responses scored before it.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._mine = threading.local()

    @property
    def name(self) -> str:
        """Return the name of the wrapped judge."""
        return self._judge.name

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls of the wrapped judge, by all threads."""
        return self._judge.calls

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Ask the wrapped judge."""
        self._mine.asked = self.asked_here() + len(prompts)
        return self._judge.ask(prompts)

    def asked_here(self) -> int:
        """Return the number of prompts from the calling thread so far."""
        return self._mine.__dict__.get("asked", 0)
