"""Mapping files: read from text or a path, and those that come with the project."""

from pathlib import Path

from data_schemas.mappings import SUFFIXES, ColumnMapping
from tasks.errors import SettingsError
from tasks.formats.yaml_file import check, parse_yaml

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
