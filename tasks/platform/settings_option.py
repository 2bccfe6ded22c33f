"""An option that takes a group of settings: how its JSON is read, and what help says about it."""

import inspect
import json
from textwrap import shorten
from typing import Any, TypeGuard, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from data_schemas import presets
from data_schemas.faults import explain
from data_schemas.json_text import each_key_once
from tasks.errors import SettingsError

Group = TypeVar("Group", bound=BaseModel)


def read_settings(
    name: str, model: type[Group], preset: object, text: str | bytes | bytearray, **options: Any
) -> tuple[object, Group]:
    """Read JSON as a group of settings.

    What it does not name keeps the value that it has in its parent, or else in the preset.

    Args:
        name: of the option.
        model: what is read.
        preset: an instance of the model, or anything else if the option has no default.
        text: JSON.
        options: of pydantic's `model_validate_json`.

    Returns:
        What the values are given over (the parent, or the preset), and the settings.

    Raises:
        SettingsError: names the field, its value and what is allowed, or the parent.
    """
    try:
        base, values = _filled(preset, text)
        return base, model.model_validate_json(values, **options)
    except ValidationError as error:
        raise SettingsError(f"--{name}: {explain(error, model)}") from error
    except ValueError as error:  # of a parent
        raise SettingsError(f"--{name}: {error}") from error


def field_lines(model: type[BaseModel], columns: int) -> list[str]:
    """Return one line per field: its name, and the first words of what it or its group is."""
    fields = model.model_fields
    heads = {name: f"    {name:{max(map(len, fields)) + 2}}" for name in fields}
    return [
        head + shorten(_about(fields[name]), columns - len(head), placeholder=" ...")
        for name, head in heads.items()
    ]


def is_settings(kind: object) -> TypeGuard[type[BaseModel]]:
    """True for a class of settings."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _filled(
    preset: object, text: str | bytes | bytearray
) -> tuple[object, str | bytes | bytearray]:
    """Return what values are given over, and all values.

    Raises:
        ValueError: there is no such parent, or it is of another workflow.
        SettingsError: a key is given twice.
    """
    try:
        content = from_json(text)
    except ValueError:  # for validation to say, as it says every other error
        return preset, text
    try:  # only the last of two values would be used
        json.loads(text, object_pairs_hook=each_key_once)
    except ValueError as error:
        raise SettingsError(f"--settings: {error}; give it once") from error
    if not isinstance(preset, BaseModel) or not isinstance(content, dict):
        return preset, text
    values = cast("dict[str, object]", content)
    base = presets.parent_of(values) or preset
    if type(base) is not type(preset):
        raise ValueError(
            f"parent {values[presets.PARENT]} has {type(base).__name__}, but this takes "
            f"{type(preset).__name__}"
        )
    return base, to_json(presets.filled(values, base), inf_nan_mode="constants")


def _about(field: Any) -> str:
    if field.description or not is_settings(field.annotation):
        return field.description or ""
    return (inspect.getdoc(field.annotation) or "").partition("\n")[0]
