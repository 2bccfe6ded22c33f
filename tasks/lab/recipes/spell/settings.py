"""Settings of self-play by questioner, responder and verifier (SPELL, arXiv 2509.23863)."""

from enum import StrEnum

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.rl_settings import RecipeSettings


class SpellRole(StrEnum):
    """The role in which the policy answers."""

    QUESTIONER = "questioner"
    CLOSED_BOOK = "closed_book"
    """The responder without documents, whose answer shows whether a question can be guessed."""
    RESPONDER = "responder"
    VERIFIER = "verifier"


class PastQuestion(FrozenModel):
    """A question that was asked about some documents, shown to the questioner who asks the next."""

    documents: tuple[str, ...]
    question: str
    answer: str


class SpellRecipe(RecipeSettings):
    """What the three roles are shown, and which of them train."""

    implementation: str = "tasks.lab.recipes.spell.turns:open_spell"

    memory: bool = Field(
        default=True, description="the questioner sees a cluster's last solvable questions"
    )
    new_documents: int = Field(default=2, ge=1, description="of a question; the paper 5")
    train_questioner: bool = Field(default=True, description="false: it stays as fine-tuned")
    max_input_tokens: int = Field(
        default=320, ge=1, description="a turn with a longer input is left out and counted"
    )
