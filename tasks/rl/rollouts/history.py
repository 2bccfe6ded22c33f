"""Records of prompts from earlier rollouts: pass rate and response lengths.

Every group with verdicts updates the record; older groups decay, because the policy changes.
Grading gives the first record. It predicts the response lengths (length-aware scheduling,
CompassMax A.9) and, with the records of similar prompts (neighbours.py), whether the next group has
zero variance.
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from data_schemas.graded import GradedProblem
from data_schemas.prompts import Domain, Problem

FADING = 0.5
"""Decay of an older record when a new group arrives."""
GRADED_WEIGHT = 4.0
"""Weight of a graded pass rate in responses: the default of GradingSettings.samples."""
MAX_SKIPS = 8
"""A prompt is rolled out again after this many skips, because the policy has changed."""


class PromptRecord(BaseModel):
    """The record of one prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    solved: float = 0.0
    scored: float = 0.0
    """Decayed number of responses with a verdict."""
    mean_tokens: float = 0.0
    skips: int = 0
    """Times in a row it was drawn and skipped."""
    last_pass_rate: float | None = None
    """Of the newest group; None before the first one."""
    expected_pass_rate: float | None = None
    """What earlier records, of this prompt and of similar ones, predicted for the newest group;
    None if there were none."""


class History:
    """Records of all prompts; plain data, so that it is committed with the state of a run."""

    def __init__(self, records: Mapping[str, PromptRecord]) -> None:
        self._records = dict(records)

    @classmethod
    def graded(cls, problems: Iterable[Problem]) -> "History":
        """Start from grading results; problems that were not graded have no record."""
        return cls(
            {
                problem.id: PromptRecord(
                    solved=GRADED_WEIGHT * problem.pass_rate,
                    scored=GRADED_WEIGHT,
                    mean_tokens=problem.mean_tokens,
                )
                for problem in problems
                if isinstance(problem, GradedProblem) and problem.pass_rate is not None
            }
        )

    def of(self, problem_id: str) -> PromptRecord:
        """The record of a prompt; an empty one if it was never seen."""
        return self._records.get(problem_id, PromptRecord())

    def remember(
        self,
        problem_id: str,
        solved: int,
        scored: int,
        lengths: Sequence[int],
        expected: float | None = None,
    ) -> None:
        """Update the record with a group; a group without verdicts changes the lengths only.

        Args:
            problem_id: of the prompt.
            solved: responses that solved it.
            scored: responses with a verdict.
            lengths: tokens of its responses.
            expected: pass rate that the records predicted before the group.
        """
        old = self.of(problem_id)
        mean = sum(lengths) / len(lengths) if lengths else old.mean_tokens
        known = old.mean_tokens > 0.0
        self._records[problem_id] = PromptRecord(
            solved=FADING * old.solved + solved,
            scored=FADING * old.scored + scored,
            mean_tokens=FADING * old.mean_tokens + (1.0 - FADING) * mean if known else mean,
            last_pass_rate=solved / scored if scored else old.last_pass_rate,
            expected_pass_rate=expected if scored else old.expected_pass_rate,
        )

    def skipped(self, problem_id: str) -> None:
        """Count one more draw that was not rolled out."""
        old = self.of(problem_id)
        self._records[problem_id] = old.model_copy(update={"skips": old.skips + 1})

    def predicted_tokens(self, problems: Sequence[Problem]) -> list[float | None]:
        """Expected mean length of a response, from the prompt's own record, else from its domain's.

        None if the whole domain has no record.
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
