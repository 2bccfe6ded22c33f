"""The papers' recipes at the size of the tiny model: the same switches, so that a laptop runs them.

Sizes (steps, lengths, prompts, learning rate, engines) are those of CPU_SMOKE. What a recipe
selects is kept: loss, clip ranges, C3PO's budget as a share of a response, rewards,
zero-variance elimination, curriculum, group size, updates per step, router replay, domains, KL;
a general SFT after RL; and the temperature and top-p of evaluation. The judge is one of the tiny
model's size. Science and general questions are generated for the recipes that train them.
"""

from data_schemas.presets import COMPASS_THINKER, COMPASSMAX, CPU_SMOKE, RING_LITE
from data_schemas.rl_settings import JudgeKind, JudgeSettings, RLSettings, TermSettings
from data_schemas.rows import Domain
from data_schemas.settings import (
    CurationSettings,
    PipelineSettings,
    Source,
)

RESPONSE_TOKENS = 24
"""Mean tokens of the merged model in the first step of RING_LITE's twin: 24.8 of at most 64.

C3PO's budget is a share of the longest response (12,800 of 24,576 tokens, Ring-lite), which a
long-CoT model uses. The tiny model does not: of its limit, that share would limit no update.
"""
_GENERATED = {Domain.SCIENCE: "sample_science", Domain.GENERAL: "sample_general"}
"""Domains that the sample world does not have, and what generates them."""
RECIPES = {
    "compassmax": COMPASSMAX,
    "ring_lite": RING_LITE,
    "compass_thinker": COMPASS_THINKER,
}


def has_judge(recipe: PipelineSettings) -> bool:
    """Return whether a phase of a recipe is rewarded by a judge."""
    return any(_is_judged(phase) for phase in (recipe.rl_one, recipe.rl_two))


def scaled(recipe: PipelineSettings, judge: str = "") -> PipelineSettings:
    """Scale a recipe down to the tiny model.

    Args:
        recipe: at full size.
        judge: address of the model in place of the recipe's judge; '' for none.
    """
    return CPU_SMOKE.model_copy(
        update={
            "curation": _scaled_curation(recipe),
            "sft": CPU_SMOKE.sft.model_copy(
                update={"epochs": min(CPU_SMOKE.sft.epochs, recipe.sft.epochs)}
            ),
            "grading": CPU_SMOKE.grading.model_copy(
                update={
                    "drop_at_or_above": recipe.grading.drop_at_or_above,
                    "drop_at_or_below": recipe.grading.drop_at_or_below,
                }
            ),
            "rl_one": _scaled_phase(recipe.rl_one, CPU_SMOKE.rl_one, judge),
            "rl_two": _scaled_phase(recipe.rl_two, CPU_SMOKE.rl_two, judge),
            "general_sft": CPU_SMOKE.sft.model_copy(
                update={
                    "epochs": recipe.general_sft.epochs,
                    "learning_rate": CPU_SMOKE.sft.learning_rate
                    * recipe.general_sft.learning_rate
                    / recipe.sft.learning_rate,
                }
            ),
            "evaluation": CPU_SMOKE.evaluation.model_copy(
                update={
                    "temperature": recipe.evaluation.temperature,
                    "top_p": recipe.evaluation.top_p,
                }
            ),
            "release": CPU_SMOKE.release.model_copy(
                update={"name": f"{recipe.release.name}-scaled"}
            ),
        }
    )


def _scaled_curation(recipe: PipelineSettings) -> CurationSettings:
    trained = {*recipe.rl_one.domains, *recipe.rl_two.domains}
    added = (Source(adapter=name) for domain, name in _GENERATED.items() if domain in trained)
    return CPU_SMOKE.curation.model_copy(update={"sources": (*CPU_SMOKE.curation.sources, *added)})


def _is_judged(phase: RLSettings) -> bool:
    return phase.rewards.judge.kind is not JudgeKind.NONE


def _scaled_term(term: TermSettings, max_new_tokens: int) -> TermSettings:
    """Scale what a term has in tokens with the length of responses: its unit is in its name."""
    own = {
        name: value * RESPONSE_TOKENS / max_new_tokens
        if name.startswith("tokens_") and isinstance(value, int | float)
        else value
        for name, value in term.own.items()
    }
    return TermSettings.model_validate({"kind": term.kind, **own})


def _scaled_phase(recipe: RLSettings, tiny: RLSettings, judge: str) -> RLSettings:
    """Keep the responses of a step, so that larger groups mean fewer prompts."""
    small = JudgeSettings()
    if judge and _is_judged(recipe):
        small = JudgeSettings(kind=JudgeKind.MODEL, address=judge)
    return recipe.model_copy(
        update={
            "steps": tiny.steps,
            "prompts_per_step": tiny.prompts_per_step * tiny.group_size // recipe.group_size,
            "max_new_tokens": tiny.max_new_tokens,
            "learning_rate": tiny.learning_rate,
            "terms": tuple(_scaled_term(one, recipe.max_new_tokens) for one in recipe.terms),
            "rewards": recipe.rewards.model_copy(
                update={"overlong_buffer": tiny.rewards.overlong_buffer, "judge": small}
            ),
            "engines": tiny.engines,
            "commit_every": tiny.commit_every,
        }
    )
