"""Presets: the YAML files in workflows/presets, and the papers' recipes at a laptop's size."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

from data_schemas.faults import did_you_mean, explain
from data_schemas.located import located
from data_schemas.machine_settings import merged_over
from data_schemas.rl_settings import JudgeKind, JudgeSettings, RLSettings, TermSettings
from data_schemas.rows import Domain
from data_schemas.settings import (
    CurationSettings,
    MergeSettings,
    PipelineSettings,
    PretrainSettings,
    ReleaseSettings,
    RetrainSettings,
    SFTSettings,
    Source,
)
from data_schemas.yaml_text import load_yaml

# Presets: YAML files in workflows/presets, each of the values by which it differs from its parent.
#
# A preset without a parent says which workflow it is for; what it does not name has the default of
# the settings model. `--settings my.yaml` reads a file of the same form: values over those of its
# `parent`, a preset or another file, or else of the workflow's own preset. Groups are merged; any
# other value, such as a list or shares by domain, replaces that of the parent. Paths in a file are
# relative to that file.

FOLDER = Path(__file__).resolve().parents[1] / "workflows" / "presets"
PARENT, WORKFLOW = "parent", "workflow"
"""Keys of a preset that are no settings."""
MODELS: Mapping[str, type[BaseModel]] = {
    "post_training": PipelineSettings,
    "retrain": RetrainSettings,
    "judge": SFTSettings,
    "pretrain": PretrainSettings,
}
"""Settings by the workflow that they are of; other workflows take those of post_training."""
ModelT = TypeVar("ModelT", bound=BaseModel)


def names() -> list[str]:
    """Name every preset."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> BaseModel:
    """Read a preset by name, or a file of that form by its path.

    Raises:
        ValueError: there is none, or it cannot be read; names the file and the key.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if not path.is_file():
        near = did_you_mean(name, names()) or f"use one of {', '.join(names())}, or a file"
        raise ValueError(f"there is no preset {name!r}; {near}")
    try:
        content = load_yaml(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} has no settings; write `parent: laptop` and what differs")
    values = located(cast("dict[str, object]", content), path.parent)
    try:
        default = parent_of(values) or _default(values)
        return type(default).model_validate(filled(values, default))
    except ValidationError as error:  # is a ValueError, of many lines
        model = MODELS.get(str(values.get(WORKFLOW)), PipelineSettings)
        raise ValueError(f"{path}: {explain(error, model)}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def preset(name: str, model: type[ModelT]) -> ModelT:
    """Return the preset of a name, which is of these settings.

    Raises:
        ValueError: there is none, or it is of other settings.
    """
    settings = load(name)
    if not isinstance(settings, model):
        raise ValueError(
            f"preset {name!r} has {type(settings).__name__}, but this takes {model.__name__}"
        )
    return settings


def parent_of(values: Mapping[str, object]) -> BaseModel | None:
    """Return the preset that values name as their parent; None if they name none.

    Raises:
        ValueError: as `load`.
    """
    return load(str(values[PARENT])) if PARENT in values else None


def filled(values: Mapping[str, object], default: BaseModel) -> dict[str, object]:
    """Return the values of settings: those given, elsewhere those of `default`.

    Raises:
        ValueError: the values are for a workflow with other settings.
    """
    workflow = values.get(WORKFLOW)
    if workflow is not None and MODELS.get(str(workflow)) is not type(default):
        raise ValueError(f"these are settings of {workflow}, not {type(default).__name__}")
    own = {name: value for name, value in values.items() if name not in (PARENT, WORKFLOW)}
    return merged_over(default, own)


def differences(before: BaseModel, after: BaseModel, where: str = "") -> Iterator[str]:
    """Yield a line for each value that differs, 'rl_one.steps: 40 -> 10'.

    Args:
        before: settings.
        after: settings of the same model.
        where: dotted name of the group, with a dot.
    """
    first, second = dict(before), dict(after)
    for name in dict.fromkeys((*first, *second)):  # fields, and the settings of a choice's own
        old, new = first.get(name), second.get(name)
        if isinstance(old, BaseModel) and isinstance(new, BaseModel):
            yield from differences(old, new, f"{where}{name}.")
        elif old != new:
            yield f"{where}{name}: {_text(before, name)} -> {_text(after, name)}"


def _text(group: BaseModel, name: str) -> str:
    return str(group.model_dump(mode="json").get(name, "its default"))


def _default(values: Mapping[str, object]) -> BaseModel:
    workflow = values.get(WORKFLOW, "post_training")
    if workflow not in MODELS:
        near = did_you_mean(str(workflow), list(MODELS)) or f"use one of {', '.join(MODELS)}"
        raise ValueError(f"workflow is {workflow!r}; {near}")
    return MODELS[str(workflow)]()


CPU_SMOKE = preset("laptop", PipelineSettings)
SINGLE_NODE = preset("single_node", PipelineSettings)
FULL_SCALE = preset("full_scale", PipelineSettings)
COMPASSMAX = preset("compassmax", PipelineSettings)
RING_LITE = preset("ring_lite", PipelineSettings)
COMPASS_THINKER = preset("compass_thinker", PipelineSettings)
NIGHTLY = preset("nightly", RetrainSettings)
NIGHTLY_DEMO = preset("nightly_demo", RetrainSettings)
NIGHTLY_SINGLE_NODE = preset("nightly_single_node", RetrainSettings)
JUDGE = preset("judge", SFTSettings)
SHIPPED_BASE = preset("shipped_base", PretrainSettings)
EQ8 = COMPASSMAX.rl_one.loss
"""ESPO (2512.00499) with its paper's clip ranges; the default's do not depend on the vocabulary."""


# The sample shop as plain values, and the steps that it shares with other generated worlds.

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


# The papers' recipes at the size of the tiny model: the same switches, so that a laptop runs them.
#
# Sizes (steps, lengths, prompts, learning rate, engines) are those of CPU_SMOKE. What a recipe
# selects is kept: loss, clip ranges, C3PO's budget as a share of a response, rewards,
# zero-variance elimination, curriculum, group size, updates per step, router replay, domains, KL;
# a general SFT after RL; and the temperature and top-p of evaluation. The judge is one of the tiny
# model's size. Science and general questions are generated for the recipes that train them.

RESPONSE_TOKENS = 24
"""Of the merged model in the first step of RING_LITE's twin: 24.8 of at most 64.

C3PO's budget is a share of the longest response (12,800 of 24,576 tokens, spec B.3), which a
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
