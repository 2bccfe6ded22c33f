"""RuscaRL (arXiv 2508.16949): the samples of a group see different shares of their rubric."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy.special import expit

from data_schemas.arrow import write_table
from data_schemas.machine_settings import Reuse
from data_schemas.rl_settings import AnyRecipe, RLSettings
from data_schemas.rollouts import ScoredRollout
from data_schemas.rows import Message, Problem, Role
from tasks.algorithms.mismatch import mismatch_metrics
from tasks.algorithms.terms.protocol import EngineGap
from tasks.algorithms.terms.table import find_terms
from tasks.errors import SettingsError
from tasks.gym.judging.rubric import Criterion, Rubric
from tasks.lab.recipes.rusca.settings import Curve, Form, Ratio, ScaffoldSettings, WithinGroup
from tasks.rl.collector import is_bare
from tasks.rl.groups import CollectedGroup
from tasks.rl.recipe import Fact, Recipe, Row, ShapedPrompt, TrainedStep

# Which criteria of a rubric a rollout prompt shows: shares by step and sample, and the choice.
#
# Source: RuscaRL (arXiv 2508.16949) and its code; a share is that of the step times that of the
# sample. Half a criterion rounds to even, as there.
# Differs: the choice is by digest and so repeatable; the published code draws without a seed.
# Letters: G rollouts per problem.


def share_of_step(step: int, total_steps: int, settings: ScaffoldSettings) -> float:
    """Share of the criteria that a step shows to its first sample.

    Args:
        step: from 1; a phase of one step is at the beginning of the curve.
        total_steps: of the phase.
        settings: the curve.
    """
    x = (step - 1) / max(total_steps - 1, 1)
    match settings.curve:
        case Curve.SIGMOID:
            return float(expit(settings.steepness * (settings.switch_at - x)))
        case Curve.POWER:
            return max(0.0, 1.0 - x) ** settings.steepness
        case Curve.CONSTANT:
            return 1.0


def shares_of_group(group_size: int, within_group: WithinGroup) -> list[float]:
    """Share of the criteria relative to the first sample, [G]; a group of one shows none."""
    if group_size == 1:
        return [0.0]
    match within_group:
        case WithinGroup.LINEAR:
            last = group_size - 1
            return [(last - sample) / last for sample in range(group_size)]
        case WithinGroup.FIRST_HALF:
            return [float(2 * sample < group_size) for sample in range(group_size)]
        case WithinGroup.EVERY:
            return [1.0] * group_size


def scaffold_ratios(
    step: int, total_steps: int, group_size: int, settings: ScaffoldSettings
) -> list[float]:
    """Share of the criteria shown to every sample of a group in a step, [G]."""
    of_step = share_of_step(step, total_steps, settings)
    return [of_step * share for share in shares_of_group(group_size, settings.within_group)]


def scaffold_subset(
    num_criteria: int, ratio: float, *, seed: int, group: str, sample: int
) -> tuple[int, ...]:
    """Choose the criteria that a sample sees, ascending: the first ones in the order of a digest.

    A larger ratio shows what a smaller one shows, and more.
    """

    def digest(criterion: int) -> str:
        return hashlib.sha256(f"{seed}|{group}|{sample}|{criterion}".encode()).hexdigest()

    count = round(num_criteria * ratio)
    return tuple(sorted(sorted(range(num_criteria), key=digest)[:count]))


# Criteria of a rubric as a part of the prompt: what a scaffold shows.
#
# Source: RuscaRL (arXiv 2508.16949): a system message with points to include and points to avoid,
# each with its points, and a ban on mentioning them.

RUBRICS = ("rubric", "rule_rubric")
"""Verifiers whose gold is a rubric."""
_INCLUDE, _AVOID = "Points to include:", "Points to avoid:"
_BAN = "Follow these points without mentioning them."


def criteria_of(problem: Problem) -> list[Criterion]:
    """Return the criteria of a problem's rubric; none if it has no rubric that can be read."""
    if problem.verifier not in RUBRICS:
        return []
    try:
        return Rubric.model_validate_json(problem.answer).criteria
    except ValidationError:  # its verifier abstains with the reason
        return []


def with_criteria(
    messages: Sequence[Message], criteria: Sequence[Criterion], form: Form
) -> tuple[Message, ...]:
    """Show criteria in a prompt; without any it stays as it is."""
    if not criteria:
        return tuple(messages)
    if form is Form.SYSTEM:
        text = _system_text(criteria)
        if messages[0].role is Role.SYSTEM:
            first, *rest = messages
            return (first.model_copy(update={"content": f"{first.content}\n\n{text}"}), *rest)
        return (Message(role=Role.SYSTEM, content=text), *messages)
    *before, last = messages
    parts = [item.criterion if item.points >= 0 else f"Not: {item.criterion}" for item in criteria]
    return (*before, last.model_copy(update={"content": " ".join([last.content, *parts])}))


def mentions(text: str, criteria: Sequence[Criterion]) -> bool:
    """True if a text repeats the words of a criterion, letter case aside."""
    folded = text.casefold()
    return any(item.criterion.casefold() in folded for item in criteria)


def _system_text(criteria: Sequence[Criterion]) -> str:
    lines: list[str] = []
    for title, is_wanted in ((_INCLUDE, True), (_AVOID, False)):
        results = [item for item in criteria if (item.points >= 0) == is_wanted]
        if results:
            lines += [title, *(f"- ({item.points:g}) {item.criterion}" for item in results)]
    return "\n".join([*lines, _BAN])


# What RuscaRL adds to the report of a phase: a row per response with what its prompt showed.

SHOWN_FILE = "scaffold.parquet"


class ShownRow(BaseModel):
    """One response of a phase with a scaffold: what its prompt showed, and what came of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=1)
    round: int = Field(ge=0)
    problem_id: str
    sample: int = Field(ge=0)
    criteria: int = Field(description="of the problem's rubric")
    shown: tuple[int, ...] = Field(description="numbers of those in its prompt")
    added_tokens: int = Field(description="of the prompt, by which it is longer than the bare one")
    mentions: bool = Field(description="the response repeats the words of a criterion")
    score: float | None


class ScaffoldReport:
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
        mask_NT[(step.old_NT == step.drawn_NT).all(dim=1)] = False
        apart = mismatch_metrics(step.old_NT, step.drawn_NT, mask_NT)
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


# RuscaRL (arXiv 2508.16949): the samples of a group see different shares of their rubric, and
# fewer from step to step (`shares_of_group`).


class Scaffold:
    """A `PromptShaper`.

    Args:
        settings: of the scaffold.
        phase: whose steps its curve spans.
    """

    def __init__(self, settings: ScaffoldSettings, phase: RLSettings) -> None:
        self._settings = settings
        self._phase = phase
        self.trains_bare = settings.ratio is not Ratio.SCAFFOLDED
        self.ratio_as_drawn = settings.ratio is Ratio.IMPORTANCE

    def check(self, problems: Sequence[Problem]) -> None:
        """Refuse a scaffold that could show nothing.

        Raises:
            SettingsError: no problem has a rubric.
        """
        if not any(map(criteria_of, problems)):
            raise SettingsError(
                "a scaffold shows criteria of rubrics, but no problem of the phase's domains has "
                "the verifier 'rubric' or 'rule_rubric'; leave the scaffold out, or choose other "
                "domains"
            )

    def shape(
        self, problem: Problem, *, step: int, group: str, size: int
    ) -> Sequence[ShapedPrompt | None]:
        """Show each sample its share of the criteria; a problem without a rubric stays bare."""
        criteria = criteria_of(problem)
        if not criteria:
            return [None] * size
        settings, phase = self._settings, self._phase
        results: list[ShapedPrompt | None] = []
        for sample, ratio in enumerate(scaffold_ratios(step, phase.steps, size, settings)):
            picks = scaffold_subset(
                len(criteria), ratio, seed=phase.seed, group=group, sample=sample
            )
            messages = with_criteria(problem.messages, [criteria[i] for i in picks], settings.form)
            results.append(ShapedPrompt(messages, picks) if picks else None)
        return results


def open_scaffold(settings: AnyRecipe, phase: RLSettings) -> Recipe:
    """Open the recipe (an `OpenRecipe`).

    Raises:
        SettingsError: the phase would undo the scaffold.
    """
    scaffold = ScaffoldSettings.model_validate(settings.model_dump())
    for one, term in zip(phase.terms, find_terms(phase.terms), strict=True):
        if term.engine_gap > EngineGap.UNUSED:
            raise SettingsError(
                f"terms has {one.kind!r}, which compares trainer and rollout engine: weights "
                "between the prompts would undo a scaffold; leave it out, or set the scaffold's "
                "ratio to 'importance'"
            )
    if phase.engines.reuse is not Reuse.OFF:
        raise SettingsError(
            f"engines.reuse is '{phase.engines.reuse.value}': an earlier response may have "
            "answered another prompt than a scaffold shows; set it to 'off'"
        )
    return Recipe(shaper=Scaffold(scaffold, phase), report=ScaffoldReport(scaffold, phase))
