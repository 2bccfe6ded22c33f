"""How often each thread asks the judge, so that a call is charged to the response it was for."""

import threading
from collections.abc import Sequence

from data_schemas.prompts import Message
from tasks.rewards.judging.protocol import Judge, JudgeCalls


class MeteredJudge:
    """A Judge that hands on to another.

    Prompts that the judge behind answers from memory count too: what a response is charged does
    not depend on who was judged before it.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._mine = threading.local()

    @property
    def name(self) -> str:
        """Name of the judge behind."""
        return self._judge.name

    @property
    def calls(self) -> JudgeCalls:
        """What the judge behind was asked, by all threads."""
        return self._judge.calls

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Ask the judge behind."""
        self._mine.asked = self.asked_here() + len(prompts)
        return self._judge.ask(prompts)

    def asked_here(self) -> int:
        """How many prompts came from the calling thread so far."""
        return self._mine.__dict__.get("asked", 0)
