"""Files that people write in YAML, JSON or lines of JSON: parsed, a wrong key is named."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from data_schemas.faults import did_you_mean, explain
from data_schemas.sources import SUFFIXES, ColumnMapping
from data_schemas.yaml_text import load_yaml
from tasks.errors import DataError, SettingsError

# Files that people write in YAML or JSON: parsed and checked, with the key named that is wrong.

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


# Files of one record per line that curation reads beside its rows.


def read_lines(path: Path, model: type[ModelT]) -> Iterator[tuple[str, ModelT]]:
    """Yield the record of every line that is not blank, with the place of the line for messages.

    Raises:
        DataError: a line is no such record; the message has its place and what is wrong with it.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                yield where, model.model_validate_json(line)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                field = ".".join(map(str, first["loc"]))
                fault = f"{field}: {first['msg']}" if field else first["msg"]
                raise DataError(f"{where}: {fault}. Correct it.") from error


# Mapping files: read from text or a path, and those that come with the project.

SHIPPED = Path(__file__).parent / "mappings"
"""Mapping files of public layouts; a mapping's name is that of its file."""


def parse_mapping(text: bytes | str, where: str) -> ColumnMapping:
    """Read a mapping.

    Args:
        text: YAML or JSON.
        where: named in messages.

    Raises:
        SettingsError: names the key and what is allowed.
    """
    return check(parse_yaml(text, where), ColumnMapping, "mapping", where)


def mapping_of(adapter: str) -> ColumnMapping | None:
    """Return the mapping that a source names, by path or as one of the project; None if neither.

    Raises:
        SettingsError: the file cannot be read or is no mapping.
    """
    if adapter.endswith(SUFFIXES):
        path = Path(adapter).expanduser()
        try:
            return parse_mapping(path.read_bytes(), str(path))
        except OSError as error:
            raise SettingsError(f"mapping {path} cannot be read: {error.strerror}") from error
    return shipped_mappings().get(adapter)


def shipped_mappings() -> dict[str, ColumnMapping]:
    """Read every mapping of the project, by name."""
    mappings = [
        parse_mapping(path.read_bytes(), path.name) for path in sorted(SHIPPED.glob("*.yaml"))
    ]
    return {mapping.name: mapping for mapping in mappings}
