"""Settings of self-play by questioner, responder and verifier (SPELL, arXiv 2509.23863)."""

from typing import Self

from pydantic import Field, model_validator

from data_schemas.group import Settings
from data_schemas.machine_settings import Reuse
from data_schemas.rl_settings import RLSettings


class SpellRecipe(Settings):
    """What the three roles are shown, and which of them train."""

    memory: bool = Field(
        default=True, description="the questioner sees a cluster's last solvable questions"
    )
    new_documents: int = Field(default=2, ge=1, description="of a question; the paper 5")
    train_questioner: bool = Field(default=True, description="false: it stays as fine-tuned")
    max_input_tokens: int = Field(
        default=320, ge=1, description="a turn with a longer input is left out and counted"
    )


class SpellPhase(Settings):
    """One phase of self-play with its recipe."""

    rl: RLSettings
    recipe: SpellRecipe

    @model_validator(mode="after")
    def _a_step_takes_whole_chains(self) -> Self:
        """A question is rewarded by the answers to it, an answer by the votes on it."""
        rl = self.rl
        asked = {
            "engines.reuse": (rl.engines.reuse.value, Reuse.OFF.value),
            "engines.segment_tokens": (rl.engines.segment_tokens, 0),
            "zero_variance.refill_rounds": (rl.zero_variance.refill_rounds, 0),
        }
        for name, (found, needed) in asked.items():
            if found != needed:
                raise ValueError(
                    f"{name} is {found!r}: self-play takes each chain of question, answers and "
                    f"votes in one step, with inputs that are new; set it to {needed!r}"
                )
        return self
