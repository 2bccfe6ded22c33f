"""Files that people write in YAML or JSON: parsed and checked, with the key named that is wrong."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from data_schemas.faults import did_you_mean, explain
from data_schemas.yaml_text import load_yaml
from tasks.errors import SettingsError

ModelT = TypeVar("ModelT", bound=BaseModel)


def parse_yaml(text: bytes | str, where: str) -> object:
    """Parse YAML or JSON.

    Raises:
        SettingsError: it is neither.
    """
    try:
        return load_yaml(text)
    except ValueError as error:
        raise SettingsError(f"{where} {error}") from error


def check(content: object, model: type[ModelT], kind: str, where: str) -> ModelT:
    """Read the content of a file as a model.

    Args:
        content: from `parse_yaml`.
        model: what the file holds.
        kind: of file, in messages: 'mapping'.
        where: the file, in messages.

    Raises:
        SettingsError: names the key and what is allowed.
    """
    keys = list(model.model_fields)
    for key in content if isinstance(content, dict) else ():
        if key not in keys:
            hint = did_you_mean(str(key), keys) or f"the keys are {', '.join(keys)}"
            raise SettingsError(f"{kind} {where}: {key} is not a key of a {kind}; {hint}")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise SettingsError(f"{kind} {where}: {explain(error, model)}") from error
