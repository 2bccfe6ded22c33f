"""Draft the mappings of your tables, show what they make of the first rows, and write the YAML.

eachprompt init products.csv reviews.csv dialogues.jsonl
"""

import argparse
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import yaml
from rich.console import Console

from data_schemas.demonstrations import Demonstration
from data_schemas.mapping import ColumnMapping
from data_schemas.prompts import Domain, Problem
from tasks.curation.adapters.mapped import language_in, read_mapped
from tasks.curation.first_rows import check_first_rows
from tasks.curation.guessing import guess_mapping
from tasks.curation.rows import RawRow, check_readable, read_rows
from tasks.errors import DataError, SettingsError
from tasks.platform.command_line import run

MOST_ROWS = 100_000
"""Rows that are looked at: a label that is rarer is quarantined as `unknown_option`."""
SHOWN = 3
FIRST_ROWS = 4000
"""Of each table in a first run, which takes minutes."""
FIRST_RUN = """\
# A first run, in minutes: it reads the first {rows:,} rows of a long table. Remove limit for all.
"""
RELEASED = """\
# Released is what beats the base for certain. With rl_has_to_gain: true, RL has to beat imitation,
# too: where imitation alone solves what is held out, nothing is released then.
"""
EXAMPLES = """examples:
  eachprompt init products.csv
  eachprompt init products.csv reviews.csv dialogues.jsonl --settings shop.yaml
"""


def draft(path: Path) -> tuple[ColumnMapping, list[RawRow]]:
    """Return a mapping for a table, and its rows.

    Raises:
        SettingsError: the table cannot be read, or nothing can be guessed.
    """
    if not path.is_file():
        raise SettingsError(f"there is no file {path}")
    try:
        check_readable(path)
        rows = [row for row in islice(read_rows(path), MOST_ROWS) if isinstance(row, RawRow)]
        mapping = guess_mapping(_name(path), [row.fields for row in rows])
    except DataError as error:
        raise SettingsError(str(error)) from error
    check_first_rows(mapping, path, str(path))
    return mapping, rows


def mapping_text(mapping: ColumnMapping, table: Path) -> str:
    """Write a mapping as YAML, with a line about what to look at."""
    given = mapping.model_dump(mode="json", exclude_defaults=True)
    lines = [
        f"# Guessed from {table.name}. Is the prompt what you would ask, and the answer right?"
    ]
    if mapping.language == "text":
        lines.append("# language: th, ja, ko or zh by the script of the prompt, else en.")
    if mapping.response and mapping.verifier:
        lines.append("# Without response there are no demonstrations: RL alone teaches the answer.")
    body = yaml.dump(given, sort_keys=False, allow_unicode=True, width=100, Dumper=_Blocks)
    return "\n".join([*lines, body])


def settings_text(
    places: Sequence[tuple[Path, Path, int]], domains: Sequence[Domain], release: str
) -> str:
    """Write settings of a run on these tables.

    Args:
        places: mapping, table and number of rows.
        domains: of their problems.
        release: name of the released model.
    """
    shares = {domain.value: 1.0 for domain in domains}
    given: dict[str, object] = {
        "parent": "laptop",
        "curation": {
            "sources": [
                {"adapter": str(mapping), "path": str(table)}
                | ({"limit": FIRST_ROWS} if rows > FIRST_ROWS else {})
                for mapping, table, rows in places
            ]
        },
        "release": {"name": release, "rl_has_to_gain": False},
    }
    if shares:
        given |= {name: {"domains": dict(shares)} for name in ("rl_one", "rl_two")}
    note = RELEASED
    if any(rows > FIRST_ROWS for _, _, rows in places):
        note += FIRST_RUN.format(rows=FIRST_ROWS)
    return note + yaml.dump(given, sort_keys=False, allow_unicode=True, width=100)


def main(arguments: Sequence[str]) -> None:
    """Draft, show and write; see --help."""
    parser = argparse.ArgumentParser(
        prog="eachprompt init",
        description=__doc__.splitlines()[0] if __doc__ else "",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tables", nargs="+", type=Path, help="CSV, JSON lines or Parquet")
    parser.add_argument(
        "--settings", type=Path, default=Path("my_settings.yaml"), help="file to write"
    )
    given = parser.parse_args(arguments)
    tables: list[Path] = given.tables
    places = [(table.with_name(f"{_name(table)}.yaml"), table) for table in tables]
    for file in [*(mapping for mapping, _ in places), given.settings]:
        if file.exists():
            raise SettingsError(f"{file} is there already; remove it to draft it anew")
    drafts = [draft(table) for table in tables]
    console = Console(soft_wrap=True, highlight=False)
    for (file, table), (mapping, rows) in zip(places, drafts, strict=True):
        console.print("\n".join(_shown(table, mapping, rows[:SHOWN])), markup=False)
        file.write_text(mapping_text(mapping, table))
    domains = list(dict.fromkeys(one.domain for one, _ in drafts if one.verifier))
    counted = [(*place, len(rows)) for place, (_, rows) in zip(places, drafts, strict=True)]
    text = settings_text(counted, domains, given.settings.stem.replace("_", "-"))
    given.settings.write_text(text)
    written = ", ".join(str(file) for file in [*(mapping for mapping, _ in places), given.settings])
    console.print(f"Wrote {written}. Correct what is guessed wrongly, then:", markup=False)
    if max(len(rows) for _, rows in drafts) > FIRST_ROWS:
        console.print(f"The first run reads {FIRST_ROWS:,} rows of a long table.", markup=False)
    if not domains:
        console.print(
            "These are demonstrations only: add a table with answers, or a benchmark "
            "(evaluation: true), to measure a release with.",
            markup=False,
        )
    console.print(f"\n    eachprompt curate --settings {given.settings}", markup=False)
    console.print(f"    eachprompt run --settings {given.settings}", markup=False)


def _shown(table: Path, mapping: ColumnMapping, rows: Sequence[RawRow]) -> list[str]:
    """Render the first rows as prompts with their answers."""
    lines = [f"{table}: {mapping.domain.value}, source {mapping.name}", ""]
    for row in rows:
        for item in read_mapped(mapping, row, language_in(table)):
            record = item.record
            if isinstance(record, Demonstration) and mapping.verifier:
                lines += [f"    response  {record.response}", ""]
                continue
            lines += [f"    {line}" for line in record.prompt_text.splitlines()]
            if isinstance(record, Problem):
                lines.append(f"    answer    {record.answer}")
            else:
                lines += [f"    response  {record.response}", ""]
    return lines


def _name(path: Path) -> str:
    """Name a source after its file, in the form that mappings ask for."""
    stem = re.sub(r"[^a-z0-9]+", "_", path.name.partition(".")[0].lower()).strip("_")
    return stem if stem[:1].isalpha() else f"table_{stem}"


class _Blocks(yaml.SafeDumper):
    """Writes a text of several lines as a block."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Blocks.add_representer(str, _represent)


if __name__ == "__main__":
    run(main)
