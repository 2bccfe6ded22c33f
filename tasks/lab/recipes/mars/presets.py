"""Presets of workflows/lab/recipes/mars.py: several agents in one policy."""

from data_schemas.rl_settings import (
    NO_SKIPS,
    LossSettings,
    RLSettings,
    ZeroVarianceSettings,
)
from data_schemas.rows import Domain
from data_schemas.sample_shop import SMALL_WORLD
from data_schemas.settings import CurationSettings, ReleaseSettings, Source
from tasks.lab.recipes.mars import sample
from tasks.lab.recipes.mars.settings import MarsRecipe
from tasks.lab.recipes.mars.turns import open_mars
from tasks.plugins import reference_to

MARS = SMALL_WORLD.model_copy(
    update={
        "curation": CurationSettings(
            sources=(Source(adapter=sample.SOURCE),),
            max_prompt_tokens=256,
            held_out_per_suite=120,
        ),
        # What is always or never solved has no right and wrong solutions to distinguish.
        "grading": SMALL_WORLD.grading.model_copy(
            update={"samples": 8, "drop_at_or_above": 0.8, "drop_at_or_below": 0.2}
        ),
        "rl_one": RLSettings(
            domains={Domain.MATHS: 1.0},
            learning_rate=1e-4,
            steps=24,
            prompts_per_step=12,
            max_new_tokens=96,
            loss=LossSettings.model_validate({"kind": "grpo", "clip_high": 0.28}),
            zero_variance=ZeroVarianceSettings(skip=NO_SKIPS),
        ),
        "rl_two": SMALL_WORLD.rl_two.model_copy(update={"steps": 0}),
        "evaluation": SMALL_WORLD.evaluation.model_copy(
            update={"samples": 8, "max_new_tokens": 96}
        ),
        "release": ReleaseSettings(name="eachprompt-mars"),
    }
)
"""MarsRL on the sample world of several agents: solver, verifier and corrector in one policy."""
MARS_RECIPE = MarsRecipe(implementation=reference_to(open_mars))
"""What follows a solver's group in it."""
