"""Mapping files: read from text or a path, and those that come with the project."""

from pathlib import Path

import yaml
from pydantic import ValidationError

from data_schemas.faults import did_you_mean, explain
from data_schemas.mapping import SUFFIXES, ColumnMapping
from tasks.errors import SettingsError

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
    try:
        given = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    known = list(ColumnMapping.model_fields)
    for key in given if isinstance(given, dict) else ():
        if key not in known:
            meant = did_you_mean(str(key), known) or f"the keys are {', '.join(known)}"
            raise SettingsError(f"mapping {where}: {key} is not a key of a mapping; {meant}")
    try:
        return ColumnMapping.model_validate(given)
    except ValidationError as error:
        raise SettingsError(f"mapping {where}: {explain(error, ColumnMapping)}") from error


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
    found = [parse_mapping(path.read_bytes(), path.name) for path in sorted(SHIPPED.glob("*.yaml"))]
    return {mapping.name: mapping for mapping in found}
