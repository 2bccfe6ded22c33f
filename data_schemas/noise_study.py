"""Settings of studies that do more than the pipeline: verdicts with errors, parents that teach."""

from typing import cast

from pydantic import Field

from data_schemas import presets
from data_schemas.demonstrations import Parent
from data_schemas.group import Seed, Settings
from data_schemas.prompts import Domain
from data_schemas.rl_settings import ErrorRates
from data_schemas.settings import PipelineSettings


class InjectedNoise(ErrorRates):
    """Errors that training sees, and evaluation does not."""

    verifiers: tuple[str, ...] = ("final_answer",)
    seed: Seed = 0


class NoiseStudySettings(Settings):
    """A phase of RL whose verdicts are wrong at known rates."""

    pipeline: PipelineSettings = cast("PipelineSettings", presets.load("laptop"))
    noise: InjectedNoise = InjectedNoise()


class TaughtStudySettings(Settings):
    """A second phase of RL that the parents of the merge teach."""

    pipeline: PipelineSettings = cast("PipelineSettings", presets.load("laptop"))
    taught_by: dict[Domain, Parent] = Field(
        default={}, description="parent of every domain, for a recipe that has `teachers`"
    )
