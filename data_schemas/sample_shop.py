"""The sample shop as plain values, and the steps that it shares with other generated worlds."""

from data_schemas.presets import CPU_SMOKE
from data_schemas.rows import Domain
from data_schemas.settings import (
    CurationSettings,
    MergeSettings,
    ReleaseSettings,
    SFTSettings,
    Source,
)

_LARGER = {"learning_rate": 1e-4}
SMALL_WORLD = CPU_SMOKE.model_copy(
    update={
        "sft": SFTSettings(learning_rate=1e-3),
        "merge": MergeSettings(scale=0.8),
        "rl_one": CPU_SMOKE.rl_one.model_copy(update=_LARGER),
        "rl_two": CPU_SMOKE.rl_two.model_copy(update=_LARGER),
    }
)
"""Larger steps, with which the other generated worlds were measured: what these build on."""

_SHOP_EPISODE = SMALL_WORLD.rl_one.model_copy(
    update={"domains": {Domain.TOOL_USE: 1.0}, "max_new_tokens": 176}
)
SHOP = SMALL_WORLD.model_copy(
    update={
        "curation": CurationSettings(
            sources=(Source(adapter="sample_shop"),),
            max_prompt_tokens=224,
            held_out_per_suite=120,
        ),
        "grading": CPU_SMOKE.grading.model_copy(update={"max_new_tokens": 176}),
        "rl_one": _SHOP_EPISODE,
        "rl_two": _SHOP_EPISODE.model_copy(update={"steps": 0}),
        "evaluation": CPU_SMOKE.evaluation.model_copy(update={"max_new_tokens": 176}),
        "release": ReleaseSettings(name="eachprompt-shop"),
    }
)
"""Multi-turn tool use: the tiny model learns to handle the sample shop's customers."""
_PURCHASE = SHOP.rl_one.model_copy(update={"max_new_tokens": 256})
WISHES = SHOP.model_copy(
    update={
        "curation": SHOP.curation.model_copy(
            update={"sources": (Source(adapter="sample_wishes"),)}
        ),
        "grading": SHOP.grading.model_copy(update={"max_new_tokens": 256}),
        "rl_one": _PURCHASE,
        "rl_two": _PURCHASE.model_copy(update={"steps": 0}),
        "evaluation": SHOP.evaluation.model_copy(update={"max_new_tokens": 256}),
        "release": ReleaseSettings(name="eachprompt-wishes"),
    }
)
"""Purchases with hidden wishes: profile, question and offers, at the size of the tiny model."""
