"""The recipe that settings ask for."""

from data_schemas.mars_settings import MarsRecipe
from data_schemas.spell_settings import SpellRecipe
from tasks.rl.recipes.mars import Mars
from tasks.rl.recipes.self_play.recipe import Spell
from tasks.rl.rollouts.agent_turns import Recipe


def open_recipe(settings: MarsRecipe | SpellRecipe | None) -> Recipe | None:
    """Make the recipe of a phase; None for a plain one."""
    match settings:
        case MarsRecipe():
            return Mars(settings)
        case SpellRecipe():
            return Spell(settings)
        case None:
            return None
