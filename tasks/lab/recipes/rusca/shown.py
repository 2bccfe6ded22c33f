"""What RuscaRL adds to the report of a phase: a row per response with what its prompt showed."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from data_schemas.arrow import write_table
from data_schemas.frozen_model import FrozenModel
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import ScoredRollout
from tasks.algorithms.mismatch import mismatch_metrics
from tasks.lab.recipes.rusca.criteria import criteria_of, mentions
from tasks.lab.recipes.rusca.settings import ScaffoldSettings
from tasks.lab.recipes.rusca.shares import share_of_step
from tasks.rl.collector import is_bare
from tasks.rl.groups import CollectedGroup
from tasks.rl.recipe import Fact, Row, TrainedStep

SHOWN_FILE = "scaffold.parquet"


class ShownRow(FrozenModel):
    """One response of a phase with a scaffold: what its prompt showed, and what came of it."""

    step: int = Field(ge=1)
    round: int = Field(ge=0)
    problem_id: str
    sample: int = Field(ge=0)
    criteria: int = Field(description="of the problem's rubric")
    shown: tuple[int, ...] = Field(description="numbers of those in its prompt")
    added_tokens: int = Field(description="of the prompt, by which it is longer than the bare one")
    mentions: bool = Field(description="the response repeats the words of a criterion")
    score: float | None


class ScaffoldPhaseReport:
    """A `PhaseReport`.

    Args:
        settings: of the scaffold.
        phase: whose steps its curve spans.
    """

    def __init__(self, settings: ScaffoldSettings, phase: RLSettings) -> None:
        self._settings = settings
        self._total = phase.steps

    def measure(self, step: TrainedStep) -> tuple[Sequence[Row], dict[str, float]]:
        """Say what every prompt showed; measure the strength of the scaffold and what it costs."""
        rows = [
            _row(step.step, entry, item) for entry in step.groups for item in entry.group.rollouts
        ]
        bare = [row for row in rows if not row.shown]
        others = [row for row in rows if row.shown]
        mask_NT = step.response_NT.clone()
        mask_NT[(step.old_NT == step.rollout_prompt_NT).all(dim=1)] = False
        apart = mismatch_metrics(step.old_NT, step.rollout_prompt_NT, mask_NT)
        metrics = {
            "scaffold/share": share_of_step(step.step, self._total, self._settings),
            "scaffold/shown_responses": float(len(others)),
            "scaffold/shown_criteria_mean": _mean([float(len(row.shown)) for row in rows]),
            "scaffold/reward_shown": _mean([row.score for row in others if row.score is not None]),
            "scaffold/reward_bare": _mean([row.score for row in bare if row.score is not None]),
            "scaffold/mentioning_responses": float(sum(row.mentions for row in rows)),
            "scaffold/added_prompt_tokens": float(sum(row.added_tokens for row in rows)),
            "scaffold/k3_between_prompts": apart["mismatch/k3"],
        }
        return [row.model_dump(mode="json") for row in rows], metrics

    def conclude(self, rows: Sequence[Row], out: Path) -> dict[str, Fact]:
        """Write the rows of all steps, and count them."""
        all_rows = [ShownRow.model_validate(row) for row in rows]
        write_table(out / SHOWN_FILE, ShownRow, all_rows)
        return {
            "scaffold_ratio": self._settings.ratio.value,
            "scaffold_responses": sum(bool(row.shown) for row in all_rows),
            "scaffold_criteria_shown": sum(len(row.shown) for row in all_rows),
            "scaffold_last_step": max((row.step for row in all_rows if row.shown), default=0),
            "scaffold_added_prompt_tokens": sum(row.added_tokens for row in all_rows),
            "scaffold_mentions": sum(row.mentions for row in all_rows),
        }


def _row(step: int, entry: CollectedGroup, item: ScoredRollout) -> ShownRow:
    rollout, criteria = item.rollout, criteria_of(entry.group.problem)
    shortest = min(len(one.rollout.prompt_tokens) for one in entry.group.rollouts)
    bare = shortest if rollout.bare_prompt is None else len(rollout.bare_prompt)
    return ShownRow(
        step=step,
        round=entry.round,
        problem_id=entry.group.problem.id,
        sample=rollout.sample,
        criteria=len(criteria),
        shown=rollout.shown,
        added_tokens=0 if is_bare(rollout) else len(rollout.prompt_tokens) - bare,
        mentions=mentions(item.text, criteria),
        score=item.verdict.score,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
