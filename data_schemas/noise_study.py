"""Settings of a study of rewards with errors: how often verdicts are wrong on purpose."""

from typing import cast

from data_schemas import presets
from data_schemas.group import Seed, Settings
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
