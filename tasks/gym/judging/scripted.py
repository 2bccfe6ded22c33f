"""A judge without a model: replies come from a plain function.

It serves tests of code that needs a judge, and trials of a recipe without a model.
"""

from collections.abc import Callable, Sequence

from data_schemas.rows import Message
from tasks.gym.judging.calls import CallCounter
from tasks.gym.judging.comparison_prompt import Label, completion, sections
from tasks.gym.judging.protocol import JudgeCalls

Script = Callable[[str], str | None]
"""Text of the last turn -> reply; None simulates a judge that is down."""


class ScriptedJudge:
    """A Judge that returns the replies of a function."""

    def __init__(self, script: Script, name: str = "scripted") -> None:
        self._script = script
        self._name = name
        self._calls = CallCounter()

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls so far; nothing is retried."""
        return self._calls.snapshot

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Run the script on every prompt."""
        replies = [self._script(prompt[-1].content) for prompt in prompts]
        self._calls.add(asked=len(replies), failed=replies.count(None))
        return replies


def preferring(worth: Callable[[str], float]) -> Script:
    """Return a script that prefers the answer of greater worth and reports equal worth as a tie."""

    def script(prompt: str) -> str:
        parts = sections(prompt)
        a, b = worth(parts["Answer A"]), worth(parts["Answer B"])
        return completion(Label.TIE if a == b else Label.A if a > b else Label.B)

    return script
