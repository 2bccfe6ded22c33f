"""The settings of a preset as a table: name, value, allowed values, unit and source."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.table import Table
from rich.text import Text

from data_schemas import presets
from data_schemas.faults import did_you_mean
from data_schemas.machine_settings import Choice, models_in
from data_schemas.references import Pluggable
from tasks.algorithms.choices import TABLES
from tasks.errors import SettingsError
from tasks.platform.tables import show_table

NARROWEST = 120
"""Smallest width in columns at which the table is readable."""


@dataclass(frozen=True, slots=True)
class ListingRow:
    """A line of the listing."""

    name: str
    value: str
    allowed: str
    meaning: str
    """Unit and source."""


def rows_of(settings: BaseModel, prefix: str = "") -> Iterator[ListingRow]:
    """Yield every setting of a group and of the groups in it, with dotted names."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            yield from rows_of(value, f"{prefix}{name}.")
            continue
        names = _names_at(settings, name)
        yield ListingRow(
            f"{prefix}{name}",
            format_value(value),
            describe_limits(field, names),
            describe(field),
        )
        for place, part in models_in(value):
            if isinstance(part, Choice):
                yield from rows_of(part, f"{prefix}{name}{place}.")
        if isinstance(settings, Choice) and name == settings.CHOSEN_BY:
            yield from rows_of(TABLES[type(settings)].choose(settings, prefix[:-1]), prefix)


def _names_at(settings: BaseModel, name: str) -> list[str]:
    """List the built-in choices that a field names; `eachprompt data` lists the adapters."""
    if isinstance(settings, Choice) and name == settings.CHOSEN_BY:
        return [*TABLES[type(settings)]]
    kinds = get_args(type(settings).model_fields[name].annotation)
    listed = [one for one in kinds if isinstance(one, type) and issubclass(one, Choice)]
    return [kind for one in listed for kind in TABLES[one]]


def describe(field: FieldInfo) -> str:
    """Return the description of a setting, or that of its enumeration."""
    kind = field.annotation
    if field.description or not (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return field.description or ""
    return (inspect.getdoc(kind) or "").splitlines()[0]


def format_value(value: object) -> str:
    """Format a value as it is written in JSON settings."""
    match value:
        case StrEnum():
            return value.value
        case BaseModel():
            values = {name: getattr(value, name) for name in type(value).model_fields}
            return ", ".join(f"{name} {format_value(one)}" for name, one in values.items() if one)
        case dict():
            return ", ".join(
                f"{format_value(key)} {format_value(one)}" for key, one in value.items()
            )
        case tuple():
            return f"[{', '.join(map(format_value, value))}]"
        case str():
            return f"'{value}'"
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)


def describe_limits(field: FieldInfo, names: Sequence[str] = ()) -> str:
    """Return the limits or the choices of a setting; '' if only its type limits it.

    Args:
        field: of the setting.
        names: of the built-in choices, of a setting that may be code of a user's own.
    """
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " | ".join(kind)
    if any(isinstance(one, Pluggable) for one in field.metadata):
        return " | ".join([*names, "FILE.py:NAME"])
    limits = []
    for limit in field.metadata:
        match limit:
            case annotated_types.Ge(ge=low):
                limits.append(f">= {low}")
            case annotated_types.Gt(gt=low):
                limits.append(f"> {low}")
            case annotated_types.Le(le=high):
                limits.append(f"<= {high}")
            case annotated_types.Lt(lt=high):
                limits.append(f"< {high}")
            case annotated_types.MinLen():
                limits.append("not empty")
            case _:
                pass
    return ", ".join(limits)


def select(rows: Sequence[ListingRow], group: str, find: str) -> list[ListingRow]:
    """Choose the settings of a group that contain a text; '' for all.

    Raises:
        SettingsError: there is none.
    """
    names = [row.name for row in rows]
    groups = sorted({name[:place] for name in names for place in _dots(name)})
    if group and group not in groups:
        near = did_you_mean(group, groups) or f"use one of {', '.join(groups)}"
        raise SettingsError(f"there is no group {group!r}; {near}")
    matches = [
        row
        for row in rows
        if row.name.startswith(f"{group}." if group else "")
        and find.lower() in f"{row.name} {row.meaning}".lower()
    ]
    if not matches:
        near = did_you_mean(find, [name.rpartition(".")[2] for name in names])
        raise SettingsError(f"no setting contains {find!r}{near and f'; {near}'}")
    return matches


def _dots(name: str) -> list[int]:
    return [place for place, letter in enumerate(name) if letter == "."]


def table_of(name: str, settings: BaseModel, rows: Sequence[ListingRow]) -> Table:
    """Build the table of some settings, with one section per group."""
    table = Table(title=f"settings of {name}", title_justify="left", box=None)
    table.add_column("setting", no_wrap=True)
    for head in ("value", "allowed", "unit, source"):
        table.add_column(head, overflow="fold")
    section = ""
    for row in rows:
        group, dot, _ = row.name.partition(".")
        if dot and group != section:
            section = group
            about = inspect.getdoc(type(getattr(settings, group))) or ""
            table.add_section()
            table.add_row(Text(group, "bold"), "", "", Text(about.splitlines()[0], "bold"))
        table.add_row(row.name, row.value, row.allowed, row.meaning)
    return table


def show(preset: str, group: str, find: str) -> None:
    """Print the settings of a preset or a YAML file that belong to a group and contain a text.

    Raises:
        SettingsError: the preset, the group or the text is not there.
    """
    try:
        settings = presets.load(preset)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    rows = select(list(rows_of(settings)), group, find)
    show_table(table_of(preset, settings, rows), NARROWEST)
