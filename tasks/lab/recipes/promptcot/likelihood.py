"""How likely fresh problems are, and how many written ones are valid: the format gate."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from data_schemas.frozen_model import FrozenModel
from tasks.engines.protocols import RolloutEngine
from tasks.errors import DataError
from tasks.lab.recipes.promptcot.formulas import bound, tighter_bound
from tasks.lab.recipes.promptcot.rationales import RationaleSample, draw
from tasks.lab.recipes.promptcot.records import WordedProblem
from tasks.lab.recipes.promptcot.settings import SynthesisSettings
from tasks.lab.recipes.promptcot.writing import write

MIN_VALID_SHARE = 0.5
"""Least share of what is decoded for concepts of fresh problems; below, the format is not learned
[I]."""
REPORT = "likelihood.json"


class Likelihood(FrozenModel):
    """A writer with a planner, on problems that nothing was trained on."""

    valid_share: float = Field(description="of problems that the writer decodes for the concepts")
    nll: dict[str, float] = Field(
        description="bound of -log p(x|c) in nats, by problem, from importance-weighted samples"
    )
    looser_nll: dict[str, float] = Field(
        description="the same from the bound that EM maximises, of rationales that ended"
    )
    unended: int = Field(description="rationales that reached the token limit: weight 0")


def measure(
    settings: SynthesisSettings,
    rows: Sequence[WordedProblem],
    planner: RolloutEngine,
    writer: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
) -> Likelihood:
    """Measure a writer and a planner; a problem without a rationale that ended is left out.

    Raises:
        DataError: the writer's problems are mostly not valid, or no rationale has ended.
    """
    outputs = write(settings, [row.concepts for row in rows], writer, tokenizer)
    share = sum(not one.reason for one in outputs) / len(outputs)
    if share < MIN_VALID_SHARE:
        raise DataError(
            f"{share:.0%} of the problems that the writer decodes for {len(rows)} taught concepts "
            f"are valid, and {MIN_VALID_SHARE:.0%} are needed: the format is not learned. Train "
            "longer (cold_start.epochs), or start from a larger base_model"
        )
    draws = draw(settings, rows, planner, writer, tokenizer)
    bounds = {
        row.id: _bounds(samples, settings.rationales)
        for row, samples in zip(rows, draws, strict=True)
        if samples
    }
    if not bounds:
        raise DataError(
            f"none of the planner's rationales for {len(rows)} problems ended within the token "
            "limit. Train longer (cold_start.epochs), or raise max_new_tokens"
        )
    return Likelihood(
        valid_share=share,
        nll={name: -tighter for name, (_, tighter) in bounds.items()},
        looser_nll={name: -lower for name, (lower, _) in bounds.items()},
        unended=settings.rationales * len(rows) - sum(map(len, draws)),
    )


def _bounds(draws: Sequence[RationaleSample], samples: int) -> tuple[float, float]:
    """Both lower bounds of log p(x|c)."""
    logs = (
        np.array([one.planner.sum() for one in draws]),
        np.array([one.rationale.sum() for one in draws]),
        np.array([one.problem.sum() for one in draws]),
    )
    share = np.full(len(draws), 1.0 / len(draws))
    return bound(share, *logs), tighter_bound(*logs, samples=samples)
