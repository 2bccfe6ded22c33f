"""A study: variants of settings x seeds x models, and the evidence that it leaves.

At the end are the settings of studies that do more than the pipeline: of judges with changed
comparisons, of verdicts with errors, of parents that teach.
"""

from typing import Any, Self, cast

from pydantic import Field, model_validator

from data_schemas import presets
from data_schemas.frozen_model import FrozenModel
from data_schemas.machine_settings import Seed, Settings, Share
from data_schemas.presets import JUDGE
from data_schemas.rows import Domain, Parent
from data_schemas.settings import PipelineSettings, SFTSettings


class Variant(Settings):
    """One arm of a study."""

    meaning: str = Field(default="", description="what it changes, for the table")
    changes: dict[str, Any] = Field(
        default={},
        description="settings by path, 'rl_two.loss.kind' or 'rl_*.loss.kind', or nested in groups",
    )
    settings: str = Field(
        default="", description="preset or file instead of the study's; '' = the study's"
    )
    against: str = Field(
        default="", description="variant it is compared with; '' = the first one of the study"
    )


class Study(Settings):
    """The declaration of a study."""

    title: str = Field(min_length=1)
    run: str = Field(
        default="workflows.lab.cells:PIPELINE",
        description="what a cell does: module:name of a tasks.lab.study.runs.CellKind",
    )
    settings: str = Field(default="laptop", description="name of a preset, or a settings file")
    changes: dict[str, Any] = Field(default={}, description="of all variants, before their own")
    seeds: tuple[Seed, ...] = Field(default=(0, 1, 2), min_length=1)
    seeded: tuple[str, ...] = Field(
        default=("sft", "grading", "rl_one", "rl_two", "evaluation"),
        description="groups whose seed is that of the cell; without curation, so that all seeds "
        "answer the same held-out problems",
    )
    models: dict[str, str] = Field(
        default={}, description="base models by name, folders; empty = that of the settings"
    )
    checkpoints: tuple[str, ...] = Field(
        default=("merged", "rl/one", "rl/two"),
        min_length=1,
        description="evaluated, in the order of training; stages behind the last one do not run",
    )
    max_tokens: int = Field(
        default=0, ge=0, description="generated tokens that end each phase of RL; 0 = its steps"
    )
    variants: dict[str, Variant] = Field(default={"default": Variant()}, min_length=1)
    gains: tuple[tuple[str, str], ...] = Field(
        default=(), description="pairs of checkpoints: what training gained from one to the other"
    )


class StudyCell(FrozenModel):
    """One variant with one seed."""

    variant: str
    seed: int
    run: str
    settings: str = Field(description="as JSON; seed included")
    checkpoints: tuple[str, ...]
    max_tokens: int


class StudyPlan(FrozenModel):
    """A study with the settings of every variant resolved, as the command hands it on."""

    name: str
    source: str = Field(description="path of the declaration")
    command: str
    study: str = Field(description="Study as JSON: its free settings have no type in Flyte")
    against: dict[str, str] = Field(description="variant to the one it is compared with")
    cells: tuple[StudyCell, ...]
    digest: str = Field(description="of the settings of all cells")


class Measures(FrozenModel):
    """What was measured of one cell."""

    variant: str
    seed: int
    metrics: dict[str, float] = Field(default={}, description="by name")
    intervals: dict[str, tuple[float, float]] = Field(
        default={}, description="within this run, of some metrics"
    )
    domains: dict[str, str] = Field(default={}, description="of the held-out problems")
    accuracy: dict[str, dict[str, float | None]] = Field(
        default={}, description="checkpoint to problem to share solved; None = no verdict"
    )
    tokens: dict[str, int] = Field(
        default={}, description="generated until this checkpoint, grading's and drafts' included"
    )
    steps: dict[str, int] = Field(default={}, description="of RL until this checkpoint")
    seconds: dict[str, float] = Field(
        default={}, description="of processors in RL until this checkpoint; without grading"
    )


class EvidenceCell(FrozenModel):
    """A number of a study, with its interval and what it is a mean of."""

    value: float | None = Field(description="None = refused, see `note`")
    low: float | None = Field(default=None, description="95 % interval; None = there is none")
    high: float | None = None
    runs: int = Field(description="seeds")
    error: float | None = Field(
        default=None, description="standard error by moments of seeds and problems, for comparison"
    )
    problems: int = Field(default=0, description="0 = not a mean over problems")
    seeds: tuple[float, ...] = Field(default=(), description="value of each seed")
    shown: bool | None = Field(
        default=None,
        description="of a difference: its intervals exclude 0, after Holm's correction",
    )
    note: str = Field(default="", description="why there is no interval, or what it stands for")


class StudyEvidence(FrozenModel):
    """What a study found, and what it was measured with. Written by its command only."""

    name: str
    title: str
    source: str = Field(description="declaration, relative to the repository")
    command: str
    commit: str = Field(description="of the repository; '+' behind it: with uncommitted changes")
    date: str
    machine: str
    settings: str = Field(description="digest of the settings of all cells")
    code: dict[str, str] = Field(description="stage to the digest of its code")
    seeds: tuple[int, ...]
    variants: dict[str, str] = Field(description="name to meaning")
    against: dict[str, str]
    checkpoints: tuple[str, ...]
    cells: dict[str, EvidenceCell]


class TrainingPairs(Settings):
    """Changes of the training comparisons; the held-out ones stay as they are."""

    tie_share: Share | None = Field(
        default=None, description="of the training pairs, all of which is as many; None = collected"
    )
    noise: Share | None = Field(
        default=None, description="share of labels replaced; None = analyses and true labels"
    )


class JudgeStudySettings(Settings):
    """A judge and a Bradley-Terry head on the same comparisons."""

    base_model: str = Field(default="", description="Hugging Face directory; '' = the shipped one")
    files: tuple[str, ...] = Field(default=(), description="comparisons; none: the sample world's")
    sft: SFTSettings = JUDGE
    training: TrainingPairs = TrainingPairs()


class ErrorRates(Settings):
    """How often a verifier is known to err."""

    false_positive: float = Field(default=0.0, ge=0.0, lt=1.0, description="wrong, but accepted")
    false_negative: float = Field(default=0.0, ge=0.0, lt=1.0, description="right, but rejected")

    @model_validator(mode="after")
    def _verdicts_inform(self) -> Self:
        if self.false_positive + self.false_negative >= 1.0:
            raise ValueError(
                f"false_positive {self.false_positive} + false_negative {self.false_negative} is 1 "
                "or more: such verdicts say nothing of a response, or the opposite; use another "
                "verifier"
            )
        return self


class InjectedNoise(ErrorRates):
    """Errors that training sees, and evaluation does not."""

    verifiers: tuple[str, ...] = ("final_answer",)
    seed: Seed = 0


class NoiseStudySettings(Settings):
    """A phase of RL whose verdicts are wrong at known rates."""

    pipeline: PipelineSettings = cast("PipelineSettings", presets.load("laptop"))
    noise: InjectedNoise = InjectedNoise()


class TaughtStudySettings(Settings):
    """Phases of RL that the parents of the merge teach, or that start without a merge."""

    pipeline: PipelineSettings = cast("PipelineSettings", presets.load("laptop"))
    taught_by: dict[Domain, Parent] = Field(
        default={}, description="parent of every domain, for a recipe that has `teachers`"
    )
    one_parent: bool = Field(
        default=False,
        description="in place of the merge: one model, fine-tuned on the demonstrations of both",
    )
