"""Draft the mappings of your tables, show what they make of the first rows, and write the YAML."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import yaml
from rich.console import Console

from data_schemas.rows import Demonstration, Domain, Parent, Problem
from data_schemas.sources import TEXT, ColumnMapping
from tasks.curation.adapters.mapped import language_in, read_mapped
from tasks.curation.first_rows import check_first_rows
from tasks.curation.rows import RawRow, check_readable, read_rows
from tasks.errors import DataError, SettingsError

# Guess a mapping from the header and the rows of a table: a draft that a person corrects.

Row = Mapping[str, object]

_LANGUAGE = ("language", "lang", "locale")
_LABEL = ("category", "label", "class", "sentiment", "rating", "stars", "intent", "cat", "tag")
_QUESTION = ("question", "prompt", "instruction", "query", "problem", "input", "ask")
_ANSWER = ("answer", "response", "output", "completion", "reply", "target", "solution")
_IDENTITY = re.compile(r"(?:^|[_ ])(?:id|sku|uuid|asin|url|link|image|date|time)(?:$|[_ ])")
_NUMBER = re.compile(r"[-+]?[\d.,]+")
_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_MOST_OPTIONS = 30
_LEAST_ROWS_PER_OPTION = 3
_LONG_OPTION = 40
"""Characters above which a value is no label."""
_MOSTLY = 0.95
"""Share of rows that have a value in a column which is used; curation counts the others."""
_USER = ("user", "human")
_SYSTEM = "system"


def guess_mapping(name: str, rows: Sequence[Row]) -> ColumnMapping:
    """Draft the mapping of a table.

    A chat becomes demonstrations, a column of few values a choice, a question with a number as its
    answer a problem of maths, and any other pair of texts demonstrations.

    Args:
        name: of the source.
        rows: of the table, all of them if labels are rare.

    Raises:
        DataError: there is no row, or no column that could be an answer.
    """
    if not rows:
        raise DataError(f"{name} has no row")
    shared = {"name": name, "language": _language(rows), "parent": Parent.COMMERCE}
    chat = _chat(rows)
    if chat:
        return ColumnMapping.model_validate(shared | {"domain": Domain.GENERAL} | chat)
    texts = _texts(rows)
    if label := _label(rows, texts):
        return ColumnMapping.model_validate(shared | _choice(rows, texts, label))
    ask, answer = _find_column(texts, _QUESTION), _find_column(texts, _ANSWER)
    if not ask or not answer:
        raise DataError(
            f"{name} has the columns {', '.join(rows[0])}, and none of them is an answer: a label "
            f"of at most {_MOST_OPTIONS} values, {', '.join(_ANSWER[:3])}, or messages. Write the "
            "mapping by hand (tasks/curation/README.md)"
        )
    templates = {"prompt": f"{{{ask}}}", "response": f"{{{answer}}}"}
    if all(_NUMBER.fullmatch(_text(row, answer)) for row in rows):
        maths = {"domain": Domain.MATHS, "verifier": "final_answer"}
        gold = {"answer": {"value": f"{{{answer}}}"}, "response": f"Answer: {{{answer}}}"}
        return ColumnMapping.model_validate(shared | templates | maths | gold)
    return ColumnMapping.model_validate(shared | templates | {"domain": Domain.GENERAL})


def _chat(rows: Sequence[Row]) -> dict[str, str]:
    """Return the templates of the first question and its answer in a list of messages."""
    for column, value in rows[0].items():
        if not isinstance(value, list) or not value or not isinstance(value[0], Mapping):
            continue
        first = cast("Mapping[str, object]", value[0])
        role, text = ("role", "content") if "role" in first else ("from", "value")
        if role not in first or text not in first:
            continue
        has_system = first[role] == _SYSTEM
        if not has_system and first[role] not in _USER:
            continue
        ask = int(has_system)
        parts = {"prompt": ask, "response": ask + 1} | ({"system": 0} if has_system else {})
        return {part: f"{{{column}.{place}.{text}}}" for part, place in parts.items()}
    return {}


def _texts(rows: Sequence[Row]) -> list[str]:
    """Name the columns of scalars, which hardly any row is without."""
    scalars = (str, int, float)
    return [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if sum(isinstance(row.get(name), scalars) for row in rows) >= _MOSTLY * len(rows)
        and not set(name) & set("{}.[]:!")
    ]


def _language(rows: Sequence[Row]) -> str:
    for name in rows[0]:
        if name.lower() in _LANGUAGE and all(_TAG.fullmatch(_text(row, name)) for row in rows):
            return f"{{{name}}}"
    return TEXT


def _label(rows: Sequence[Row], texts: Sequence[str]) -> str:
    """Name the column of labels: by its name, or else the last one of few values; '' if none."""
    fits: list[str] = []
    for name in texts:
        counts = Counter(filter(None, (_text(row, name) for row in rows)))
        is_identity = _IDENTITY.search(name.lower()) or name.lower() in _LANGUAGE
        if (
            not is_identity
            and 2 <= len(counts) <= _MOST_OPTIONS
            and counts.total() >= max(_MOSTLY * len(rows), _LEAST_ROWS_PER_OPTION * len(counts))
            and all(len(value) <= _LONG_OPTION for value in counts)
        ):
            fits.append(name)
    return _find_column(fits, _LABEL) or (fits[-1] if fits else "")


def _choice(rows: Sequence[Row], texts: Sequence[str], label: str) -> dict[str, object]:
    options = sorted({_text(row, label) for row in rows} - {""})
    columns: list[str] = []
    facets: dict[str, str] = {}
    for name in texts:
        if name == label or name.lower() in _LANGUAGE or _IDENTITY.search(name.lower()):
            continue
        if all(_NUMBER.fullmatch(_text(row, name)) for row in rows):
            facets[name] = f"{{{name}}}"
        else:
            columns.append(name)
    if not columns:
        raise DataError(f"no column is left to ask about, beside the label {label}")
    names = f"{', '.join(options[:-1])} or {options[-1]}"
    lines = [f"Which {label.replace('_', ' ')} is this: {_escaped(names)}?"]
    lines += [f"{_escaped(name)}: {{{name}}}" for name in columns]
    return {
        "domain": Domain.CHOICE,
        "prompt": "\n".join(lines),
        "verifier": "choice",
        "answer": {"correct": [f"{{{label}}}"]},
        "options": options,
        "response": f"{{{label}}}",
        "facets": facets,
    }


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _find_column(columns: Sequence[str], names: Sequence[str]) -> str:
    lower = {column.lower(): column for column in columns}
    return next((lower[name] for name in names if name in lower), "")


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value).strip()


# Draft the mappings of your tables, show what they make of the first rows, and write the YAML.
#
# eachprompt init products.csv reviews.csv dialogues.jsonl

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
    fields = mapping.model_dump(mode="json", exclude_defaults=True)
    lines = [
        f"# Guessed from {table.name}. Is the prompt what you would ask, and the answer right?"
    ]
    if mapping.language == "text":
        lines.append("# language: th, ja, ko or zh by the script of the prompt, else en.")
    if mapping.response and mapping.verifier:
        lines.append("# Without response there are no demonstrations: RL alone teaches the answer.")
    body = yaml.dump(fields, sort_keys=False, allow_unicode=True, width=100, Dumper=_Blocks)
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
    document: dict[str, object] = {
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
        document |= {name: {"domains": dict(shares)} for name in ("rl_one", "rl_two")}
    note = RELEASED
    if any(rows > FIRST_ROWS for _, _, rows in places):
        note += FIRST_RUN.format(rows=FIRST_ROWS)
    return note + yaml.dump(document, sort_keys=False, allow_unicode=True, width=100)


def write_drafts(tables: Sequence[Path], settings: Path) -> None:
    """Draft the mappings of tables and settings that read them, show their rows, and write both.

    Args:
        tables: CSV, JSON lines or Parquet.
        settings: file to write; the mappings lie beside their tables.

    Raises:
        SettingsError: a file is there already.
        DataError: a table has no column that could be an answer.
    """
    places = [(table.with_name(f"{_name(table)}.yaml"), table) for table in tables]
    for file in [*(mapping for mapping, _ in places), settings]:
        if file.exists():
            raise SettingsError(f"{file} is there already; remove it to draft it anew")
    drafts = [draft(table) for table in tables]
    console = Console(soft_wrap=True, highlight=False)
    for (file, table), (mapping, rows) in zip(places, drafts, strict=True):
        console.print("\n".join(_preview(table, mapping, rows)), markup=False)
        file.write_text(mapping_text(mapping, table))
    domains = list(dict.fromkeys(one.domain for one, _ in drafts if one.verifier))
    entries = [(*place, len(rows)) for place, (_, rows) in zip(places, drafts, strict=True)]
    text = settings_text(entries, domains, settings.stem.replace("_", "-"))
    settings.write_text(text)
    files = ", ".join(str(file) for file in [*(mapping for mapping, _ in places), settings])
    console.print(f"Wrote {files}. Correct what is guessed wrongly, then:", markup=False)
    if max(len(rows) for _, rows in drafts) > FIRST_ROWS:
        console.print(f"The first run reads {FIRST_ROWS:,} rows of a long table.", markup=False)
    if not domains:
        console.print(
            "These are demonstrations only: add a table with answers, or a benchmark "
            "(evaluation: true), to measure a release with.",
            markup=False,
        )
    console.print(f"\n    eachprompt curate --settings {settings}", markup=False)
    console.print(f"    eachprompt run --settings {settings}", markup=False)


def _preview(table: Path, mapping: ColumnMapping, rows: Sequence[RawRow]) -> list[str]:
    """Render the first rows as prompts with their answers, and count those without an answer."""
    lines = [f"{table}: {mapping.domain.value}, source {mapping.name}", ""]
    label = mapping.response.strip("{}") if mapping.options else ""
    if empty := sum(not _text(row.fields, label) for row in rows if label):
        lines += [f"    {label} is empty in {empty:,} of {len(rows):,} rows; they are left out", ""]
    for row in islice((row for row in rows if not label or _text(row.fields, label)), SHOWN):
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
