"""All settings of a preset as a table: name, value, allowed values, unit and source.

python -m tasks.settings.listing full_scale
"""

import argparse
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from data_schemas import presets
from tasks.platform.command_line import run

NARROWEST = 120
"""Smallest width in columns at which descriptions are readable."""
PRESETS: dict[str, BaseModel] = {
    name.lower(): value
    for name, value in vars(presets).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, BaseModel)
}


@dataclass(frozen=True, slots=True)
class Row:
    """One setting."""

    name: str
    value: str
    allowed: str
    meaning: str
    """Unit and source."""


def rows_of(settings: BaseModel, prefix: str = "") -> Iterator[Row]:
    """Yield every setting of a group and of the groups in it, with dotted names."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            yield from rows_of(value, f"{prefix}{name}.")
        else:
            yield Row(
                f"{prefix}{name}", format_value(value), describe_limits(field), describe(field)
            )


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
            given = {name: getattr(value, name) for name in type(value).model_fields}
            return ", ".join(f"{name} {format_value(one)}" for name, one in given.items() if one)
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


def describe_limits(field: FieldInfo) -> str:
    """Return the limits or the choices of a setting; '' if only its type limits it."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " | ".join(kind)
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


def table_of(name: str, settings: BaseModel) -> Table:
    """Build the table, with one section per group of settings."""
    table = Table(title=f"settings of {name}", title_justify="left", box=None)
    table.add_column("setting", no_wrap=True)
    for head in ("value", "allowed", "unit, source"):
        table.add_column(head, overflow="fold")
    section = ""
    for row in rows_of(settings):
        group, dot, _ = row.name.partition(".")
        if dot and group != section:
            section = group
            about = inspect.getdoc(type(getattr(settings, group))) or ""
            table.add_section()
            table.add_row(f"[bold]{group}[/bold]", "", "", f"[bold]{about.splitlines()[0]}[/bold]")
        table.add_row(row.name, escape(row.value), escape(row.allowed), escape(row.meaning))
    return table


def main(arguments: Sequence[str]) -> None:
    """Print the table; see --help."""
    parser = argparse.ArgumentParser(prog="python -m tasks.settings.listing", description=__doc__)
    parser.add_argument("preset", choices=sorted(PRESETS), nargs="?", default="cpu_smoke")
    preset = parser.parse_args(arguments).preset
    console = Console(highlight=False)
    width = max(console.width, NARROWEST)
    Console(highlight=False, width=width).print(table_of(preset, PRESETS[preset]))


if __name__ == "__main__":
    run(main)
