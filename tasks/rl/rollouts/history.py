"""What is known of a prompt before it is rolled out again: its pass rate and its lengths.

Every group that gets verdicts is remembered, older ones fading, because the policy moves. Grading
gives the first record. From it follow the chance that the next group is flat (stage 1 of
zero-variance elimination, CompassMax A.4) and how long its responses will be (length-aware
scheduling, A.9).
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from data_schemas.graded import GradedProblem
from data_schemas.prompts import Domain, Problem
from tasks.algorithms.zero_variance import zero_variance_probability

FADING = 0.5
"""What an older record weighs when a new one comes."""
GRADED_WEIGHT = 4.0
"""Responses that a graded pass rate counts for: the default of GradingSettings.samples."""
MAX_SKIPS = 4
"""A prompt is rolled out again after this many skips: the policy has moved since."""


class PromptRecord(BaseModel):
    """One prompt, as far as it is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    solved: float = 0.0
    judged: float = 0.0
    """Faded number of responses with a verdict."""
    mean_tokens: float = 0.0
    skips: int = 0
    """Times in a row it was drawn and skipped."""
    last_pass_rate: float | None = None
    """Of the newest group; None before the first one."""


class History:
    """Records of all prompts; plain data, so that it is committed with the state of a run."""

    def __init__(self, records: Mapping[str, PromptRecord]) -> None:
        self._records = dict(records)

    @classmethod
    def graded(cls, problems: Iterable[Problem]) -> "History":
        """Start from what grading found; problems that were not graded have no record."""
        return cls(
            {
                problem.id: PromptRecord(
                    solved=GRADED_WEIGHT * problem.pass_rate,
                    judged=GRADED_WEIGHT,
                    mean_tokens=problem.mean_tokens,
                )
                for problem in problems
                if isinstance(problem, GradedProblem) and problem.pass_rate is not None
            }
        )

    def of(self, problem_id: str) -> PromptRecord:
        """The record of a prompt; an empty one if it was never seen."""
        return self._records.get(problem_id, PromptRecord())

    def remember(self, problem_id: str, solved: int, judged: int, lengths: Sequence[int]) -> None:
        """Take up a group; one without verdicts changes the lengths only."""
        old = self.of(problem_id)
        mean = sum(lengths) / len(lengths) if lengths else old.mean_tokens
        known = old.mean_tokens > 0.0
        self._records[problem_id] = PromptRecord(
            solved=FADING * old.solved + solved,
            judged=FADING * old.judged + judged,
            mean_tokens=FADING * old.mean_tokens + (1.0 - FADING) * mean if known else mean,
            last_pass_rate=solved / judged if judged else old.last_pass_rate,
        )

    def skipped(self, problem_id: str) -> None:
        """Count one more draw that was not rolled out."""
        old = self.of(problem_id)
        self._records[problem_id] = old.model_copy(update={"skips": old.skips + 1})

    def pass_rate(self, problem_id: str) -> float | None:
        """Pass rate so far, one pseudo-response towards the middle; None if nothing is known."""
        record = self.of(problem_id)
        if record.judged == 0.0:
            return None
        return (record.solved + 0.5) / (record.judged + 1.0)

    def zero_variance_probability(self, problem_id: str, group_size: int) -> float:
        """Chance that the next group has no reward variance; 0 if nothing is known."""
        rate = self.pass_rate(problem_id)
        return 0.0 if rate is None else zero_variance_probability(rate, group_size)

    def predicted_tokens(self, problems: Sequence[Problem]) -> list[float | None]:
        """Mean length of a response to expect: the prompt's own record, else that of its domain.

        None where nothing is known of the whole domain.
        """
        own = [self.of(problem.id).mean_tokens for problem in problems]
        known: dict[Domain, list[float]] = {}
        for problem, tokens in zip(problems, own, strict=True):
            if tokens > 0.0:
                known.setdefault(problem.domain, []).append(tokens)
        typical = {domain: sum(values) / len(values) for domain, values in known.items()}
        return [
            tokens if tokens > 0.0 else typical.get(problem.domain)
            for problem, tokens in zip(problems, own, strict=True)
        ]

    def records(self) -> dict[str, PromptRecord]:
        """All records, to be committed."""
        return dict(self._records)
