"""What a recipe may change in a phase of RL: four seams, each of which may stay unused.

    turns      what a group is followed by: inputs made from its responses, in other roles
    shaper     under which prompt a sample is drawn, and which prompt it is trained under
    teacher    under which prompt a response is scored again, by the policy or by another model
    report     rows, metrics and facts that it adds to the report of the phase

The loop, its state, snapshot and ledger know these Protocols and no recipe. Settings name the
function that opens one (`data_schemas/rl_settings.py`); only `open_recipe` calls it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

import torch
from pydantic import JsonValue

from data_schemas.reports import Plot
from data_schemas.rl_settings import AnyRecipe, RecipePhase, RLSettings
from data_schemas.rollouts import AgentTurn
from data_schemas.rows import Domain, Message, Problem
from tasks.algorithms.distillation import Blend
from tasks.errors import SettingsError
from tasks.plugins import attribute, digest_of
from tasks.rl.groups import CollectedGroup
from tasks.store.files import sha256_bytes

Memory = Mapping[str, JsonValue]
"""What a recipe remembers from step to step, by problem; committed with the state of the phase."""
Fact = float | int | str
Row = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class TurnRewards:
    """The groups of a step, with rewards that need all of them."""

    groups: Sequence[CollectedGroup]
    memory: Memory = field(default_factory=dict)
    """Behind the step."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Particular to the recipe."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How many turns a step takes, and when."""

    agents: tuple[str, ...]
    """The roles, in the order of their turns."""
    max_input_tokens: int
    """A turn with a longer input is not taken."""
    pipelined: bool = False
    """True: a turn waits for the next step; False: it is taken in the step that made it."""
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Turns of an agent that a step takes at most; the others wait. No entry: all."""


class AgentTurns(Protocol):
    """Which turns of other agents follow a group."""

    @property
    def limits(self) -> TurnLimits:
        """How many turns a step takes, and when."""
        ...

    def first_turn(self, key: str, root: Problem, memory: Memory) -> AgentTurn | None:
        """Make the turn that a prompt of the stream begins with; None: the prompt is asked.

        Args:
            key: of the draw.
            root: the prompt.
            memory: of the steps before.
        """
        ...

    def next_turns(self, key: str, root: Problem, entry: CollectedGroup) -> list[AgentTurn]:
        """Make the turns that follow a group; none ends its chain.

        Args:
            key: of the group.
            root: the problem that its chain is about.
            entry: the group with its verdicts.
        """
        ...

    def reward(self, groups: Sequence[CollectedGroup], memory: Memory) -> TurnRewards:
        """Give the rewards that are known at the end of a step only, and measure the step.

        Args:
            groups: of the step, whose verdicts are those of their verifiers.
            memory: of the steps before.
        """
        ...


@dataclass(frozen=True, slots=True)
class ShapedPrompt:
    """What a sample is drawn under instead of the prompt of its problem."""

    messages: tuple[Message, ...]
    shown: tuple[int, ...]
    """What it shows, by numbers of the recipe's own; at least one."""


class PromptShaper(Protocol):
    """Under which prompt every sample of a group is drawn."""

    @property
    def trains_bare(self) -> bool:
        """True: a response is trained under the prompt of its problem; False: as it was drawn."""
        ...

    @property
    def ratio_as_drawn(self) -> bool:
        """True: the denominator of the policy ratio has the log-probabilities under the prompt that
        a response was drawn with, as importance sampling asks; False: under the trained one.
        """
        ...

    def check(self, problems: Sequence[Problem]) -> None:
        """Refuse problems that it could not shape.

        Raises:
            SettingsError: names the problems.
        """
        ...

    def shape(
        self, problem: Problem, *, step: int, group: str, size: int
    ) -> Sequence[ShapedPrompt | None]:
        """Shape the prompt of every sample of a group, in order; None: as the problem states it.

        Args:
            problem: of the stream.
            step: in which it is drawn, from 1.
            group: key of the group, unique in a phase.
            size: samples of the group.
        """
        ...


class Teacher(Protocol):
    """Under which prompt a response is scored again, by the policy or by another model.

    The response is trained under its own prompt; nothing of the teacher's prompt enters the update.
    """

    @property
    def blend(self) -> Blend:
        """How its advantages join those of the rewards."""
        ...

    @property
    def folders(self) -> Mapping[Domain, Path]:
        """Other models that teach, by the domain of the prompt; the policy teaches the others."""
        ...

    @property
    def max_prompt_tokens(self) -> int:
        """A response whose prompt of the teacher is longer is not taught."""
        ...

    def prompts(self, entry: CollectedGroup) -> Sequence[Sequence[Message] | None]:
        """Make the prompt behind which each response of a group is scored; None: it is not taught.

        Args:
            entry: of the training batch, with its verdicts.
        """
        ...


@dataclass(frozen=True, slots=True)
class TrainedStep:
    """What a step was trained on, for the report of a recipe."""

    step: int
    groups: Sequence[CollectedGroup]
    """All that were finished, the surplus ones too."""
    response_NT: torch.Tensor
    """Response tokens of the batch."""
    old_NT: torch.Tensor
    """Log-probabilities under the prompts that are trained."""
    rollout_prompt_NT: torch.Tensor
    """Those under the prompts that the responses were drawn with."""


class PhaseReport(Protocol):
    """What a recipe adds to the report of a phase."""

    def measure(self, step: TrainedStep) -> tuple[Sequence[Row], dict[str, float]]:
        """Return rows that are kept with the step, and its metrics."""
        ...

    def conclude(self, rows: Sequence[Row], out: Path) -> dict[str, Fact]:
        """Write files into the report, from the rows of all steps; return facts of the phase."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parts of a recipe; without any it is a plain phase."""

    turns: AgentTurns | None = None
    shaper: PromptShaper | None = None
    teacher: Teacher | None = None
    report: PhaseReport | None = None
    verifiers: frozenset[str] = frozenset()
    """That its turns name, in addition to those of the prompts."""
    expected_verifiers: frozenset[str] = frozenset()
    """That its settings speak of; one that no problem of the phase has is said at its start."""
    plots: tuple[Plot, ...] = ()
    """What the page of a run draws of its metrics."""


class OpenRecipe(Protocol):
    """What settings name: makes a recipe of its settings and those of the phase."""

    def __call__(self, settings: AnyRecipe, phase: RLSettings) -> Recipe:
        """Open the recipe.

        Raises:
            SettingsError: of a value of the phase that the recipe does not go with.
        """
        ...


PLAIN = Recipe()


def open_recipe(settings: AnyRecipe | None, phase: RLSettings) -> Recipe:
    """Open the recipe of a phase; a plain one without settings.

    Raises:
        SettingsError: there is no such implementation, or it refuses the settings.
    """
    if settings is None:
        return PLAIN
    implementation = attribute(settings.implementation)
    if not callable(implementation):
        raise SettingsError(
            f"recipe.implementation {settings.implementation!r} is no function; name one that "
            "takes settings and phase and returns a Recipe (tasks/rl/recipe.py)"
        )
    return cast("OpenRecipe", implementation)(settings, phase)


def pinned_source(settings: AnyRecipe) -> AnyRecipe:
    """Add the digest of its source and of the modules beside it that it imports.

    What else it imports is covered by the digest of the stage of RL.

    Raises:
        SettingsError: there is no such implementation.
    """
    return settings.model_copy(update={"code": digest_of(settings.implementation)})


def with_recipe(settings: RLSettings, recipe: AnyRecipe | None) -> RLSettings | RecipePhase:
    """Return the settings of a phase as its statement has them.

    Args:
        settings: of the phase.
        recipe: in place of that of the settings.
    """
    recipe = recipe or settings.recipe
    settings = settings.model_copy(update={"recipe": None})
    return settings if recipe is None else RecipePhase(rl=settings, recipe=recipe)


def without_recipe(phase: RLSettings | RecipePhase) -> tuple[RLSettings, AnyRecipe | None]:
    """Return the settings of a phase and its recipe."""
    return (phase.rl, phase.recipe) if isinstance(phase, RecipePhase) else (phase, None)


def code_of(phase: RLSettings | RecipePhase, code: str) -> str:
    """Return the digest of all code of a phase.

    Args:
        phase: with its recipe.
        code: of the stage of RL.

    Raises:
        SettingsError: the source of the recipe is not that which was pinned.
    """
    _, recipe = without_recipe(phase)
    if recipe is None:
        return code
    source = pinned_source(recipe).code
    if recipe.code != source:
        raise SettingsError(
            f"the source of {recipe.implementation} is {source[:12]}, and {recipe.code[:12]} "
            "was pinned; pass the settings through check_settings, or start again"
        )
    return sha256_bytes(f"{code} {source}".encode())
