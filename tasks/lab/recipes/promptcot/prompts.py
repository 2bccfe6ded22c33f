"""What writer and planner are asked and what they answer, as demonstrations and as tokens.

writer   Write: multiply, add; pan, kite; 3                      <think>z</think>x
planner  Plan: multiply, add; pan, kite; 3 / 4 pans at 5 and ... z
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.rows import Demonstration, Domain, Message, Parent, Role
from tasks.engines.chat import opening_of, render_prompt, render_response
from tasks.errors import SettingsError
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN
from tasks.lab.recipes.promptcot.records import WordedProblem
from tasks.store.files import canonical_json, sha256_bytes

SOURCE = "synthesis"
LANGUAGE = "en"


def writer_prompt(concepts: str) -> tuple[Message, ...]:
    """Ask for a rationale and a problem."""
    return (Message(role=Role.USER, content=f"Write: {concepts}"),)


def planner_prompt(row: WordedProblem) -> tuple[Message, ...]:
    """Ask for the rationale of a problem."""
    return (Message(role=Role.USER, content=f"Plan: {row.concepts}\n{row.problem}"),)


def writer_response(rationale: str, problem: str) -> str:
    """Join rationale and problem."""
    return f"{THINK_OPEN}{rationale}{THINK_CLOSE}{problem}"


def read_response(response: str) -> tuple[str, str] | None:
    """Split a writer's response into rationale and problem; None if it has another form."""
    rationale, separator, problem = response.removeprefix(THINK_OPEN).partition(THINK_CLOSE)
    marks = (THINK_OPEN, THINK_CLOSE)
    wrong = not response.startswith(THINK_OPEN) or not separator
    if wrong or any(mark in rationale + problem for mark in marks):
        return None
    return rationale, problem


def demonstrate(row: WordedProblem, rationale: str, parent: Parent) -> Demonstration:
    """Write a problem with its rationale as a demonstration of the writer or of the planner."""
    writes = parent is Parent.WRITER
    return Demonstration(
        id=f"{SOURCE}/{parent.value}/{row.id}",
        parent=parent,
        domain=Domain.MATHS,
        language=LANGUAGE,
        messages=writer_prompt(row.concepts) if writes else planner_prompt(row),
        response=writer_response(rationale, row.problem) if writes else rationale,
        source=SOURCE,
        source_row=sha256_bytes(canonical_json(row)),
    )


@dataclass(frozen=True, slots=True)
class JointSequence:
    """A writer's response to concepts, in tokens, with the rationale that a planner sampled."""

    tokens: NDArray[np.int32]
    problem_from: int
    """Position of the problem's first token."""
    rationale_from: int
    """Position of the mark before the rationale."""

    def parts(
        self, logprobs: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Split the log-probabilities of tokens 1..T-1 into those of rationale and of problem."""
        wide = logprobs.astype(np.float64)
        first, second = self.rationale_from - 1, self.problem_from - 1
        return wide[first:second], wide[second:]


def join(
    tokenizer: PreTrainedTokenizerBase, row: WordedProblem, rationale: NDArray[np.int32]
) -> JointSequence:
    """Put a sampled rationale between concepts and problem, with the very tokens it was sampled in.

    Args:
        tokenizer: of both models.
        row: concepts and problem.
        rationale: tokens without the end token.

    Raises:
        SettingsError: the tokenizer lacks a mark, or its chat template sets one itself.
    """
    if opening_of(tokenizer):
        raise SettingsError(
            f"the chat template says {opening_of(tokenizer)!r} before a response; a rationale is "
            "sampled with its own <think>. Choose a base_model whose template does not."
        )
    start, close = (_mark(tokenizer, text) for text in (THINK_OPEN, THINK_CLOSE))
    prompt = render_prompt(tokenizer, writer_prompt(row.concepts))
    problem = render_response(tokenizer, row.problem)
    tokens = np.concatenate([prompt, [start], rationale, [close], problem]).astype(np.int32)
    return JointSequence(tokens, len(tokens) - len(problem), len(prompt))


def _mark(tokenizer: PreTrainedTokenizerBase, text: str) -> int:
    """Return the token of a mark.

    Raises:
        SettingsError: the tokenizer has none.
    """
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        raise SettingsError(
            f"{text!r} is {len(ids)} tokens, so it may merge with the text beside it; choose a "
            "base_model whose tokenizer has a token of its own for it, as Qwen3's has"
        )
    return ids[0]
