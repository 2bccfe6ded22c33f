"""Files that people write in YAML or JSON: parsed and checked, with the key named that is wrong."""

from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from data_schemas.faults import did_you_mean, explain
from tasks.errors import SettingsError

ModelT = TypeVar("ModelT", bound=BaseModel)


def parse_yaml(text: bytes | str, where: str) -> object:
    """Parse YAML or JSON.

    Raises:
        SettingsError: it is neither.
    """
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{where} is not YAML: {' '.join(str(error).split())}") from error


def check(given: object, model: type[ModelT], kind: str, where: str) -> ModelT:
    """Read the content of a file as a model.

    Args:
        given: from `parse_yaml`.
        model: what the file holds.
        kind: of file, in messages: 'mapping'.
        where: the file, in messages.

    Raises:
        SettingsError: names the key and what is allowed.
    """
    known = list(model.model_fields)
    for key in given if isinstance(given, dict) else ():
        if key not in known:
            meant = did_you_mean(str(key), known) or f"the keys are {', '.join(known)}"
            raise SettingsError(f"{kind} {where}: {key} is not a key of a {kind}; {meant}")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise SettingsError(f"{kind} {where}: {explain(error, model)}") from error
