"""Questions and rule of reward of the RL benchmarks, the same for every trainer."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from data_schemas.rollouts import ResponseScore, ScoringRequest
from data_schemas.rows import Problem
from data_schemas.verdicts import scored
from tasks.engines.chat import load_tokenizer, response_text
from tests.records import problem_of


def reward(text: str) -> float:
    """Full marks for an even number of characters: free, and half of all text."""
    return float(len(text) % 2 == 0)


class InlineScorer:
    """The Scorer of the benchmark: scores in this process, as TRL does."""

    def __init__(
        self,
        folder: Path,
        seen: Callable[[Sequence[str], Sequence[str]], object] = lambda *_: None,
    ) -> None:
        """Score responses of the model in a folder.

        Args:
            seen: called with the prompts' ids and the texts of the responses, once a step.
        """
        self._tokenizer = load_tokenizer(folder)
        self._seen = seen
        self._waiting: list[ScoringRequest] = []

    def submit(self, item: ScoringRequest) -> None:
        """Keep it."""
        self._waiting.append(item)

    def gather(self) -> dict[tuple[str, int], ResponseScore]:
        """Score all responses."""
        items, self._waiting = self._waiting, []
        texts = [
            item.tokens
            if isinstance(item.tokens, str)
            else response_text(self._tokenizer, item.tokens.tolist())
            for item in items
        ]
        self._seen([item.problem.id for item in items], texts)
        return {
            (item.group, item.sample): ResponseScore(text, scored(reward(text), "rule"), 0.0, 0)
            for item, text in zip(items, texts, strict=True)
        }

    def check_canaries(self, verifiers: Collection[str]) -> None:
        """There are none."""


def problems(count: int) -> tuple[Problem, ...]:
    """Questions of different lengths."""
    return tuple(
        problem_of(
            " and ".join(f"{number} + {term}" for term in range(1 + number % 5)),
            '{"value":"1"}',
            id=f"bench/{number}",
            source="bench",
        )
        for number in range(count)
    )
