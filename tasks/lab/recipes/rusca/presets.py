"""Presets of workflows/lab/recipes/rusca.py: ads with a hidden house style."""

from data_schemas.presets import EQ8
from data_schemas.rl_settings import NO_SKIPS, ZeroVarianceSettings
from data_schemas.rows import Domain
from data_schemas.sample_shop import SMALL_WORLD
from data_schemas.settings import CurationSettings, ReleaseSettings, Source
from tasks.lab.recipes.rusca import sample
from tasks.lab.recipes.rusca.prompts import open_scaffold
from tasks.lab.recipes.rusca.settings import Form, ScaffoldSettings
from tasks.plugins import reference_to

HOUSE_STYLE = SMALL_WORLD.model_copy(
    update={
        "curation": CurationSettings(
            sources=(Source(adapter=sample.SOURCE),), held_out_per_suite=120
        ),
        "rl_one": SMALL_WORLD.rl_one.model_copy(
            update={
                "domains": {Domain.INSTRUCTION: 1.0},
                "steps": 30,
                "prompts_per_step": 16,
                "learning_rate": 3e-4,
                "loss": EQ8,
                # Records are of responses without criteria: they do not predict those with them.
                "zero_variance": ZeroVarianceSettings(refill_rounds=1, skip=NO_SKIPS),
            }
        ),
        "rl_two": SMALL_WORLD.rl_two.model_copy(
            update={"domains": {Domain.INSTRUCTION: 1.0}, "steps": 0}
        ),
        "release": ReleaseSettings(name="eachprompt-house"),
    }
)
"""Ads with a hidden house style: what workflows/lab/recipes/rusca.py trains."""

HOUSE_SCAFFOLD = ScaffoldSettings(
    implementation=reference_to(open_scaffold), form=Form.USER, switch_at=0.4
)
"""The tiny model was taught rules behind the request, and no system message. A phase of 30 steps
shows criteria in the first 12."""
