"""An option that takes a group of settings: how its JSON is read, and what help says about it."""

import inspect
from typing import Any, TypeGuard, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from data_schemas.faults import explain
from data_schemas.group import merged_over
from tasks.errors import SettingsError

Group = TypeVar("Group", bound=BaseModel)


def read_settings(
    name: str, model: type[Group], preset: object, text: str | bytes | bytearray, **options: Any
) -> Group:
    """Read JSON as a group of settings. What it does not name keeps the value of the preset.

    Args:
        name: of the option.
        model: what is read.
        preset: an instance of the model, or anything else if the option has no default.
        text: JSON.
        options: of pydantic's `model_validate_json`.

    Raises:
        SettingsError: names the field, its value and what is allowed.
    """
    try:
        return model.model_validate_json(_filled(preset, text), **options)
    except ValidationError as error:
        raise SettingsError(f"--{name}: {explain(error, model)}") from error


def field_lines(model: type[BaseModel], columns: int) -> list[str]:
    """Return one line per field: its name, and its description or that of its group."""
    fields = model.model_fields
    width = max(map(len, fields), default=0) + 2
    return [f"    {name:{width}}{_about(info)}"[:columns].rstrip() for name, info in fields.items()]


def is_settings(kind: object) -> TypeGuard[type[BaseModel]]:
    """True for a class of settings."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _filled(preset: object, text: str | bytes | bytearray) -> str | bytes | bytearray:
    try:
        given = from_json(text)
    except ValueError:  # for validation to say, as it says every other error
        return text
    if not isinstance(preset, BaseModel) or not isinstance(given, dict):
        return text
    merged = merged_over(preset, cast("dict[str, object]", given))
    return to_json(merged, inf_nan_mode="constants")


def _about(field: Any) -> str:
    if field.description or not is_settings(field.annotation):
        return field.description or ""
    return (inspect.getdoc(field.annotation) or "").partition("\n")[0]
