"""Presets: YAML files in workflows/presets, each of the values by which it differs from its parent.

A preset without a parent says which workflow it is for; what it does not name has the default of
the settings model. `--settings my.yaml` reads a file of the same form: values over those of its
`parent`, a preset, an example (`example:shop`) or another file, or else of the workflow's own
preset. Groups are merged; any other value, such as a list or shares by domain, replaces that of the
parent. Paths in a file are relative to that file.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

from data_schemas.faults import did_you_mean, explain
from data_schemas.located import located
from data_schemas.machine_settings import merged_over
from data_schemas.settings import (
    PipelineSettings,
    PretrainSettings,
    RetrainSettings,
    SFTSettings,
)
from data_schemas.shipped import FOLDERS, shipped
from data_schemas.yaml_text import load_yaml

FOLDER = FOLDERS["preset"]
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
    """Read a preset by name, or a file of that form by its path or by `example:NAME`.

    Raises:
        ValueError: there is none, or it cannot be read; names the file and the key.
    """
    is_file = name.endswith((".yaml", ".yml"))
    path = shipped(name) or (Path(name) if is_file else FOLDER / f"{name}.yaml")
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
