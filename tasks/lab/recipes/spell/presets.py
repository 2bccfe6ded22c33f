"""Presets of workflows/lab/recipes/spell.py: self-play on offer lists."""

from data_schemas.rl_settings import NO_SKIPS, LossSettings, RLSettings, ZeroVarianceSettings
from data_schemas.rows import Domain
from data_schemas.sample_shop import SMALL_WORLD
from data_schemas.settings import CurationSettings, ReleaseSettings, Source
from tasks.lab.recipes.spell import sample
from tasks.lab.recipes.spell.settings import SpellRecipe
from tasks.lab.recipes.spell.turns import open_spell
from tasks.plugins import reference_to

SPELL = SMALL_WORLD.model_copy(
    update={
        "curation": CurationSettings(
            sources=(Source(adapter=sample.SOURCE),), max_prompt_tokens=256
        ),
        "sft": SMALL_WORLD.sft.model_copy(
            update={"epochs": 4, "learning_rate": 2e-3, "batch_tokens": 1024}
        ),
        # Nothing is left out: a phase of self-play has no pass rates to choose by.
        "grading": SMALL_WORLD.grading.model_copy(
            update={"samples": 2, "max_new_tokens": 96, "drop_at_or_above": 1.01}
        ),
        "rl_one": RLSettings(
            domains={Domain.GENERAL: 1.0},
            learning_rate=1e-4,
            steps=40,
            prompts_per_step=24,
            max_new_tokens=96,
            loss=LossSettings.model_validate({"kind": "grpo", "clip_high": 0.28}),
            zero_variance=ZeroVarianceSettings(skip=NO_SKIPS),  # a question is new every time
        ),
        "rl_two": RLSettings(
            domains={Domain.CHOICE: 2.0, Domain.MATHS: 1.0},
            learning_rate=1e-4,
            steps=40,
            prompts_per_step=24,
            max_new_tokens=96,
            loss=LossSettings.model_validate({"kind": "grpo", "clip_high": 0.28}),
            zero_variance=ZeroVarianceSettings(refill_rounds=1, skip=NO_SKIPS),
        ),
        "evaluation": SMALL_WORLD.evaluation.model_copy(update={"max_new_tokens": 96}),
        "release": ReleaseSettings(name="eachprompt-spell"),
    }
)
"""Self-play on clusters of offer lists (`rl_one`), beside a plain phase on questions about such
clusters with references (`rl_two`)."""
SPELL_RECIPE = SpellRecipe(implementation=reference_to(open_spell))
"""What the roles are shown in it."""
SPELL_VARIANTS: dict[str, SpellRecipe | None] = {
    "spell": SPELL_RECIPE,
    "plain": None,
    "no_memory": SPELL_RECIPE.model_copy(update={"memory": False}),
    "frozen": SPELL_RECIPE.model_copy(update={"train_questioner": False}),
}
"""As published, questions with references in place of self-play, and one thing left out at a time
(the paper's ablations)."""


def select_variants(names: str) -> tuple[str, ...]:
    """Select variants by name; all of them for ''. The first one is always the published one.

    Raises:
        ValueError: there is no such variant.
    """
    selection = {name.strip() for name in names.split(",") if name.strip()}
    unknown = sorted(selection - SPELL_VARIANTS.keys())
    if unknown:
        raise ValueError(f"there is no variant {unknown[0]!r}; use {', '.join(SPELL_VARIANTS)}")
    return tuple(name for name in SPELL_VARIANTS if not selection or name in {*selection, "spell"})
