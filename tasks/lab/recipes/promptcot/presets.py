"""Presets of workflows/lab/recipes/promptcot.py: problems written by a model."""

from data_schemas.rl_settings import NO_SKIPS, LossSettings, RLSettings, ZeroVarianceSettings
from data_schemas.rows import Domain
from data_schemas.sample_shop import SMALL_WORLD
from data_schemas.settings import CurationSettings, ReleaseSettings, SFTSettings, Source
from tasks.lab.recipes.promptcot.sample import SOURCE
from tasks.lab.recipes.promptcot.settings import SynthesisRecipe

_ANY_ENTROPY = (0.0, 1e3)
"""A writer does not explore in RL: its checkpoint is chosen by validation loss alone."""

SYNTHESIS = SMALL_WORLD.model_copy(
    update={
        # Its solver answers tersely, so that it errs on some samples of a problem.
        "curation": CurationSettings(
            sources=(Source(adapter=SOURCE),),
            max_prompt_tokens=256,
            held_out_per_suite=80,
        ),
        # A solver that knows less has more to learn from its pairs.
        "sft": SMALL_WORLD.sft.model_copy(update={"epochs": 2}),
        # PromptCoT 2.0: what at least half of 8 answers solve is dropped; 0 of 8 has no pair.
        "grading": SMALL_WORLD.grading.model_copy(
            update={
                "samples": 8,
                "drop_at_or_above": 0.5,
                "drop_at_or_below": 0.0,
                "weights": {Domain.MATHS: 1.0},
                "max_problems": 240,
            }
        ),
        "rl_one": RLSettings(
            domains={Domain.MATHS: 1.0},
            learning_rate=1e-4,
            steps=12,
            prompts_per_step=12,
            loss=LossSettings.model_validate({"kind": "grpo", "clip_high": 0.28}),
            zero_variance=ZeroVarianceSettings(skip=NO_SKIPS),  # the pools are small
        ),
        "evaluation": SMALL_WORLD.evaluation.model_copy(update={"samples": 4}),
        "release": ReleaseSettings(name="eachprompt-synthesis"),
    }
)
"""Settings of the solver: it answers, votes on labels, and learns from pairs and by RL."""
SYNTHESIS_RECIPE = SynthesisRecipe(
    cold_start=SMALL_WORLD.sft.model_copy(
        update={"entropy_window": _ANY_ENTROPY, "entropy_prompts": 1}
    ),
    # PromptCoT 2.0: a tenth of the cold start's rate, which here would change nothing.
    em=SFTSettings(epochs=2, learning_rate=3e-4, entropy_window=_ANY_ENTROPY, entropy_prompts=1),
)
"""Settings of the writer p(z, x | c) and the planner q(z | c, x)."""
