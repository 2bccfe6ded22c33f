"""The form of a response: `<think>...</think>answer`, whatever its source writes."""

import re

from tasks.curation.rows import tidy
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN

_LAYOUTS = (
    re.compile(
        r"\s*<(?:thought|thinking|reasoning)>(?P<thought>.*?)</(?:thought|thinking|reasoning)>"
        r"\s*(?:<(?P<tag>output|answer|response)>(?P<answer>.*?)</(?P=tag)>|(?P<rest>.*))\s*",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(
        r"\s*<\|begin_of_thought\|>(?P<thought>.*?)<\|end_of_thought\|>\s*"
        r"(?:<\|begin_of_solution\|>(?P<answer>.*?)(?:<\|end_of_solution\|>)?|(?P<rest>.*))\s*",
        re.DOTALL,
    ),
)
"""Marco-o1 and its relatives; OpenThoughts, whose last tag may be missing."""


def as_response(text: str) -> str:
    """Write a response as `<think>...</think>answer`; without a thought, the thought is empty.

    `<Thought>...</Thought><Output>...</Output>` (Marco-o1) and its relatives are rewritten, and
    `<|begin_of_thought|>...<|end_of_thought|>` (OpenThoughts). What has a `<think>` or `</think>`
    is left as it is: curation checks its form.
    """
    if THINK_OPEN in text or THINK_CLOSE in text:
        return tidy(text)
    match = next((match for layout in _LAYOUTS if (match := layout.fullmatch(text))), None)
    if match is None:
        return f"{THINK_OPEN}{THINK_CLOSE}{tidy(text)}"
    answer = match["rest"] if match["answer"] is None else match["answer"]
    return f"{THINK_OPEN}{tidy(match['thought'])}{THINK_CLOSE}{tidy(answer)}"


def thought_of(reasoning: object, answer: str) -> str:
    """Write a thought and an answer that stand in two columns as one response."""
    return f"{THINK_OPEN}{tidy(str(reasoning))}{THINK_CLOSE}{tidy(answer)}"
