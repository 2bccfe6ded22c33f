"""Settings of synthesised problems: concepts, rationale, problem (PromptCoT 2.0, arXiv 2509.19894).

They are settings of a recipe of their own (workflows/lab/recipes/promptcot.py), not of
every pipeline.
"""

from enum import StrEnum

from pydantic import Field

from data_schemas.machine_settings import MachineSettings, Seed, Settings
from data_schemas.rl_settings import PairLossSettings
from data_schemas.settings import SFTSettings


class PartScore(StrEnum):
    """What a rationale and a problem each count in the reward; the paper does not say which."""

    MEAN = "mean"
    """Per token, so that a long rationale has no disadvantage [I]."""
    SUM = "sum"
    """Sum over all tokens, as in the factorisation; prefers short rationales."""


class PreferenceSettings(Settings):
    """DPO on a right and a wrong answer."""

    loss: PairLossSettings = PairLossSettings()
    beta: float = Field(default=0.1, gt=0.0, description="TRL's default; the paper does not say it")
    learning_rate: float = Field(
        default=3e-5, gt=0.0, le=1.0, description="PromptCoT 2.0: 1e-6 at 4B"
    )
    batch_pairs: int = Field(default=16, ge=1, description="per update; PromptCoT 2.0: 16")
    engines: MachineSettings = MachineSettings()
    seed: Seed = 0


class SynthesisSettings(Settings):
    """How rationales are chosen, and how problems are written and labelled."""

    rationales: int = Field(
        default=8, ge=1, le=1024, description="drawn per problem in the E-step; PromptCoT 2.0: 8"
    )
    part_score: PartScore = PartScore.MEAN
    min_rationale_tokens: int = Field(
        default=4, ge=0, description="a shorter rationale is never chosen; 0 = any length"
    )
    temperature: float = Field(
        default=0.8, ge=0.01, le=2.0, description="of writing problems; PromptCoT 1.0: 0.8"
    )
    problems: int = Field(default=400, ge=1, description="written, before any is left out")
    votes: int = Field(
        default=8, ge=2, le=1024, description="answers per problem, for its majority label"
    )
    max_new_tokens: int = Field(default=96, ge=1, description="of every response")
    engines: MachineSettings = MachineSettings()
    seed: Seed = 0


class SynthesisRecipe(Settings):
    """All settings of the recipe; those of curation, grading and evaluation are the pipeline's."""

    synthesis: SynthesisSettings = SynthesisSettings()
    cold_start: SFTSettings = SFTSettings()
    em: SFTSettings = SFTSettings()
    preference: PreferenceSettings = PreferenceSettings()
