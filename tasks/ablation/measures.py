"""Measurements of a cell of the study: one variant and one seed.

Definitions used in the table:

    reward             mean verdict of the last 10 steps
    zv first           share of zero-variance groups among first draws, mean over steps
    zv trained         share of zero-variance groups in the batches, mean over steps
    tokens per point   generated tokens per point of held-out accuracy above the start model
    tokens per solved  generated tokens, drafts included, per group with a solved response
    grad variance      variance of the gradient norm over the steps; relative: over its mean squared
    wait               seconds a step waits for verdicts after its last response
    verify             seconds of verification per step: the wait if one worker scored after the
                       rollouts
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from data_schemas.arrow import read_table
from data_schemas.ledger import LedgerRow, PromptCost
from data_schemas.reports import (
    COSTS_FILE,
    LEDGER_FILE,
    STEPS_FILE,
    TIMING_FILE,
    StepReport,
    StepTiming,
)
from data_schemas.samples import SampleResult
from tasks.ablation.schedules import Makespans, makespans
from tasks.errors import DataError
from tasks.formats.ledger_file import read_ledger

LAST_STEPS = 10
Record = TypeVar("Record", bound=BaseModel)


class Cell(BaseModel):
    """Measurements of one phase of one variant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: str
    seed: int
    generated_tokens: int
    reward: float
    flat_first: tuple[float, ...] = Field(description="share among first draws, per step")
    flat_trained: tuple[float, ...] = Field(description="share in the batch, per step")
    rewards: tuple[float, ...] = Field(description="mean verdict, per step")
    trained_tokens: tuple[float, ...] = Field(description="that the loss counts, per step")
    reused_share: tuple[float, ...] = Field(
        description="of the responses' tokens, those taken from earlier responses, per step"
    )
    tokens_per_solved: float
    gradient_variance: float
    gradient_relative_variance: float
    staleness: float
    clip_share: float
    mismatch_nats: float = Field(description="mean |dlogp| between the engines")
    wait_s: float
    verify_s: float
    step_s: float
    makespans: Makespans
    accuracy: dict[str, float | None] = Field(
        description="held-out problem -> share of its scored responses that solved it, if any"
    )

    @property
    def steps(self) -> int:
        """Steps until the tokens were used up."""
        return len(self.flat_first)


def read_cell(variant: str, seed: int, training: Path, held_out_evaluation: Path) -> Cell:
    """Read the reports of a phase and of the held-out evaluation of its model.

    Raises:
        DataError: the phase has no steps.
    """
    return cell_of(
        variant,
        seed,
        steps=_lines(training / STEPS_FILE, StepReport),
        timings=_lines(training / TIMING_FILE, StepTiming),
        rows=read_ledger(training / LEDGER_FILE),
        costs=read_table(training / COSTS_FILE, PromptCost),
        accuracy=read_accuracy(held_out_evaluation),
    )


def read_accuracy(held_out_evaluation: Path) -> dict[str, float | None]:
    """Read the accuracy by problem of a held-out evaluation."""
    samples = read_table(held_out_evaluation / "samples.parquet", SampleResult)
    return accuracy_by_problem(samples)


def cell_of(
    variant: str,
    seed: int,
    *,
    steps: Sequence[StepReport],
    timings: Sequence[StepTiming],
    rows: Sequence[LedgerRow],
    costs: Sequence[PromptCost],
    accuracy: dict[str, float | None],
) -> Cell:
    """Measure a phase.

    Raises:
        DataError: the phase has no steps.
    """
    if not steps:
        raise DataError(f"the phase {variant!r} with seed {seed} has no step; raise max_tokens")
    generated = sum(row.generated_tokens for row in rows)
    norms = np.array(_column(steps, "policy/grad_norm"))
    variance = float(norms.var())
    return Cell(
        variant=variant,
        seed=seed,
        generated_tokens=generated,
        reward=_mean(_column(steps, "reward/mean")[-LAST_STEPS:]),
        flat_first=tuple(_column(steps, "zero_variance/share")),
        flat_trained=tuple(_column(steps, "zero_variance/trained_share")),
        rewards=tuple(_column(steps, "reward/mean")),
        trained_tokens=tuple(_column(steps, "policy/trained_tokens")),
        reused_share=_reused_share(rows, [step.step for step in steps]),
        tokens_per_solved=generated / max(1, sum(row.solved > 0 for row in rows)),
        gradient_variance=variance,
        gradient_relative_variance=variance / max(float(norms.mean()) ** 2, 1e-30),
        staleness=_mean(_column(steps, "rollout/staleness_versions")),
        clip_share=_mean(_column(steps, "policy/clip_share")),
        mismatch_nats=_mean(_column(steps, "mismatch/mean_abs_logprob")),
        wait_s=_mean([timing.seconds["reward"] for timing in timings]),
        verify_s=sum(cost.verifier_seconds for cost in costs) / len(steps),
        step_s=_mean([_step_seconds(timing) for timing in timings]),
        makespans=makespans(rows),
        accuracy=accuracy,
    )


def accuracy_by_problem(samples: Sequence[SampleResult]) -> dict[str, float | None]:
    """Share of scored responses that solved a problem; None if no response has a verdict."""
    solved: dict[str, list[bool]] = defaultdict(list)
    for sample in samples:
        solved[sample.problem_id] += [sample.solved] if sample.scored else []
    return {name: _mean(found) if found else None for name, found in solved.items()}


def _reused_share(rows: Sequence[LedgerRow], steps: Sequence[int]) -> tuple[float, ...]:
    """Share of reused tokens among those of a step's responses; 0 if there are none."""
    reused, new = dict.fromkeys(steps, 0), dict.fromkeys(steps, 0)
    for row in rows:
        reused[row.step] += row.reused_tokens
        new[row.step] += row.generated_tokens - row.draft_tokens
    return tuple(reused[step] / max(1, reused[step] + new[step]) for step in steps)


def _step_seconds(timing: StepTiming) -> float:
    """Seconds of a step; rollout and reward are contained in its other parts."""
    return sum(value for name, value in timing.seconds.items() if name not in ("rollout", "reward"))


def _column(steps: Sequence[StepReport], name: str) -> list[float]:
    return [step.metrics[name] for step in steps]


def _lines(path: Path, kind: type[Record]) -> list[Record]:
    return [kind.model_validate_json(line) for line in path.read_bytes().splitlines()]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
