"""Draft the mappings of your tables, show what they make of the first rows, and write the YAML.

eachprompt init products.csv reviews.csv dialogues.jsonl
"""

import os
import re
import shlex
import textwrap
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import cast
from unicodedata import combining, normalize

import yaml

from data_schemas.mappings import TEXT, ColumnMapping
from data_schemas.public_sets import BENCHMARKS
from data_schemas.rows import Demonstration, Domain, Problem
from data_schemas.yaml_text import is_text
from tasks.curation.adapters.general import compared
from tasks.curation.adapters.mapped import language_in, read_mapped
from tasks.curation.adapters.table import ADAPTERS
from tasks.curation.first_rows import check_first_rows
from tasks.curation.guessing.columns import header_fault
from tasks.curation.guessing.mapping import Guess, guess_mapping
from tasks.curation.items import Item
from tasks.curation.readers.cells import unread_in
from tasks.curation.readers.class_names import classes_in
from tasks.curation.readers.missing import is_missing
from tasks.curation.readers.paths import parts_of
from tasks.curation.rows import BadRow, RawRow, UnreadableRow, check_readable, has_suffix, read_rows
from tasks.errors import DataError, SettingsError
from tasks.formats.delimited import is_delimited
from tasks.platform.tables import Screen
from tasks.store.files import sha256_bytes

MOST_ROWS = 100_000
"""Rows that are looked at: a label that is rarer is quarantined as `unknown_option`."""
_TRIED = 20
"""First rows that an adapter has to read."""
_READ_ANYTHING = (
    "av_speakerbench_blind",
    "bbh",
    "code_contests",
    "math_train",
    "sample_world",
    "sample_slow",
    "sample_fast",
    "sample_shop",
    "sample_wishes",
)
"""Adapters that read tables of another meaning, too: input and target, description, problem, or
question, choices and answer, which for one of them are about a clip that is not there."""
_MARKS = {"toolrl_rlla": "<think>"}
"""What a row of a layout has besides its columns: instruction, input and output are Alpaca's."""
NO_TERMS = "licence and responsible say whose rows these are; card, bill and papers name them."
MERGED = "Cells are merged, of which only the first has the value: unmerge and fill them"
SHOWN = 3
# "test", "val.jsonl", "my-dev", "xnli_test_id": a name of what is held out
_HELD_OUT = re.compile(
    r"(?:^|[^a-z])(test|validation|valid|val|dev|eval|heldout|held_out)(?:[^a-z]|$)"
)
_SPLITS = frozenset(("split", "partition", "subset"))
"""Columns of the names of splits."""
_TOTAL = re.compile(
    r"(?:grand |sub-?)?total(?: geral)?|jumlah|sum|tổng(?: cộng)?|รวม|合計|合计|總計|总计",
    re.IGNORECASE,
)
"""What the last row of a sheet says in place of a name."""
_LONGEST_NAME = 58
"""Characters of a source's name, of 64, beside `table_`."""
_LONGEST_RELEASE = 200
FIRST_ROWS = 4000
"""Rows of each table in a first run, which takes minutes."""
FIRST_RUN = """\
# A first run, in minutes: it reads the first {rows:,} rows of a long table. Remove limit for all.
"""
RELEASED = """\
# Released is what beats the base for certain. With rl_has_to_gain: true, RL has to beat imitation,
# too: where imitation alone solves what is held out, nothing is released then.
"""


@dataclass(frozen=True, slots=True)
class Draft:
    """How one table is read."""

    table: Path
    rows: list[RawRow]
    mapping: ColumnMapping | None = None
    """None: by the adapter."""
    adapter: str = ""
    remarks: tuple[str, ...] = ()
    label: str = ""

    terms: Mapping[str, str] = field(default_factory=dict)
    """Licence terms of a source that an adapter reads; a mapping holds its own."""

    def with_terms(self, terms: Mapping[str, str]) -> "Draft":
        """Record whose the rows are: in the mapping, if there is one, or in the source."""
        known = {name: text for name, text in terms.items() if text}
        if self.mapping is None:
            return replace(self, terms=known)
        return replace(self, mapping=self.mapping.model_copy(update=known))

    @property
    def file(self) -> Path | None:
        """Where its mapping is written: beside the table."""
        return self.table.with_name(f"{_name(self.table)}.yaml") if self.mapping else None

    def items(self) -> Iterator[list[Item]]:
        """Yield what becomes of the rows that can be read."""
        language = language_in(self.table)
        for row in self.rows:
            if self.label and not _is_present(row, self.label):
                continue
            try:
                if self.mapping is None:
                    yield ADAPTERS[self.adapter].read(row)
                else:
                    yield read_mapped(self.mapping, row, language)
            except (BadRow, ValueError):
                continue


def draft(path: Path, label: str = "", language: str = "") -> Draft:
    """Return how a table is read: by the adapter of its layout, or by a mapping that is guessed.

    Args:
        path: of the table.
        label: the column of the labels; '' = guess.
        language: a tag, or the column that has it; '' = guess.

    Raises:
        SettingsError: the table cannot be read, or nothing can be guessed.
    """
    if path.is_dir():
        names = [one.name for one in sorted(path.iterdir()) if has_suffix(one.name)][:SHOWN]
        tables = f", such as {', '.join(names)}" if names else ""
        raise SettingsError(f"{path} is a folder; name the tables in it{tables}")
    if not path.is_file():
        raise SettingsError(f"there is no file {path}")
    read, rows, unread = list[RawRow | UnreadableRow](), list[RawRow](), list[UnreadableRow]()
    try:
        check_readable(path)
        read = list(islice(read_rows(path), MOST_ROWS))
        rows = [row for row in read if isinstance(row, RawRow)]
        unread = [row for row in read if isinstance(row, UnreadableRow)]
        if unread and not rows:
            problem = unread[0].problem
            raise DataError(
                f"none of {len(unread):,} rows of {path} can be read; the first: {problem.reason}, "
                f"{problem.detail}"
            )
        has_header = is_delimited(path.name) or path.suffix.lower() == ".xlsx"
        if rows and has_header and (fault := header_fault([row.cells for row in rows])):
            raise DataError(f"{path} has no header where one is looked for: {fault}")
        if rows and (pair := compared(rows[0].fields)):
            raise DataError(
                f"{path} compares answers ({pair}): two answers of one task train a judge: "
                f"eachprompt judge --files {path}"
            )
        if not label and not language and (adapter := _adapter_of(rows[:_TRIED])):
            held_out = () if adapter in BENCHMARKS else tuple(_held_out(path, rows))
            return Draft(path, rows, adapter=adapter, remarks=held_out)
        cells = [row.cells for row in rows]
        guess = guess_mapping(_name(path), cells, label, language, classes_in(path))
    except DataError as error:
        lost = f". {_lost(unread, len(read))}" if unread and rows else _odd(rows)
        lost += f". {MERGED}" if _has_merged_cells(path) else ""
        raise SettingsError(f"{error}{lost}") from error
    first = check_first_rows(guess.mapping.name, guess.mapping, path, str(path))
    remarks = (*guess.remarks, *first.lost, *first.unchecked, *_left_out(guess, path, rows))
    remarks += (*_held_out(path, rows), *_totals(guess, rows))
    remarks += (f"{MERGED}.",) if _has_merged_cells(path) else ()
    if unread:
        remarks += (f"{_lost(unread, len(read))}.",)
    return Draft(path, rows, guess.mapping, remarks=remarks, label=guess.label)


def _has_merged_cells(path: Path) -> bool:
    """True for a workbook in which a value spans several cells."""
    if path.suffix.lower() != ".xlsx" or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        return any(b"<mergeCell " in archive.read(name) for name in sheets)


def _held_out(path: Path, rows: Sequence[RawRow]) -> list[str]:
    """Say that rows are those of a test split, by the name of their file or a column."""
    remedy = "`evaluation: true` beside its path in the settings holds it out"
    folder = path.parent.name.lower()
    match = _HELD_OUT.search(path.name.lower()) or _HELD_OUT.fullmatch(folder)
    if match:
        return [f"{path.name} is a {match[1]} split by its name, and is trained on: {remedy}."]
    for name in (one for one in rows[0].fields if one.casefold() in _SPLITS):
        counts = Counter(str(row.cells.get(name)).casefold() for row in rows)
        held_out = [one for one in counts if _HELD_OUT.fullmatch(one)]
        if held_out:
            return [
                f"{counts[held_out[0]]:,} of {len(rows):,} rows are of the {held_out[0]} split by "
                f"{name}, and are trained on: write a file a split. {remedy.capitalize()}."
            ]
    return []


def _totals(guess: Guess, rows: Sequence[RawRow]) -> list[str]:
    """Say that the last row of a table is no row but a sum."""
    cells = [str(rows[-1].cells.get(name, "")).strip() for name in guess.mapping.columns]
    total = next((one for one in cells if _TOTAL.fullmatch(one)), "")
    return [f"The last row says {total!r}: remove it, if it is a sum."] if total else []


def _lost(unread: Sequence[UnreadableRow], count: int) -> str:
    problem = unread[0].problem
    return f"{len(unread):,} of {count:,} rows cannot be read: {problem.reason}, {problem.detail}"


def _odd(rows: Sequence[RawRow]) -> str:
    """Say what may hide the columns of a table of which nothing can be guessed."""
    if len(rows) == 1 and any(isinstance(cell, Mapping | list) for cell in rows[0].cells.values()):
        return (
            ". The file is one row: write an object a line (pandas: orient='records', lines=True)"
        )
    unread = (unread_in(cell) for row in rows for cell in row.cells.values())
    first = next((one for one in unread if one), None)
    return f". A cell is not read: {first.problem}" if first else ""


def _left_out(guess: Guess, path: Path, rows: Sequence[RawRow]) -> list[str]:
    """Say why some of the first rows become nothing; of blank cells the guess has said so."""
    reasons, details = Counter[str](), dict[str, str]()
    language = language_in(path)
    for row in rows[:FIRST_ROWS]:
        if guess.label and not _is_present(row, guess.label):
            continue
        try:
            read_mapped(guess.mapping, row, language)
        except BadRow as error:
            reasons[error.reason] += 1
            details.setdefault(error.reason, error.detail)
    return [
        f"{count:,} of the first {len(rows[:FIRST_ROWS]):,} rows are left out: {reason}, "
        f"{details[reason]}."
        for reason, count in reasons.items()
        if reason != "empty_field"
    ]


def _adapter_of(rows: Sequence[RawRow]) -> str:
    """Name the adapter that reads the layout of these rows; '' if none does."""
    fits: list[tuple[int, str]] = []
    for name, adapter in ADAPTERS.items():
        wanted = set(adapter.columns)
        if name in _READ_ANYTHING or adapter.generate or len(wanted) < 2:
            continue
        if rows and all(wanted <= row.fields.keys() and _reads(name, row) for row in rows):
            fits.append((len(wanted), name))
    return max(fits)[1] if fits else ""


def _reads(adapter: str, row: RawRow) -> bool:
    if not any(_MARKS.get(adapter, "") in str(cell) for cell in row.cells.values()):
        return False
    try:
        return bool(ADAPTERS[adapter].read(row))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, SyntaxError):
        return False


def mapping_text(mapping: ColumnMapping, table: Path) -> str:
    """Write a mapping as YAML, with a line about what to look at."""
    fields = mapping.model_dump(mode="json", exclude_defaults=True)
    lines = [
        f"# Guessed from {table.name}. Is the prompt what you would ask, and the answer right?"
    ]
    if not mapping.licence or not mapping.responsible:
        lines.append(f"# {NO_TERMS}")
    if mapping.language == TEXT or not isinstance(mapping.language, str):
        lines.append("# language: that of the prompt of each row, or und where it is not certain.")
    if mapping.response and mapping.verifier:
        lines.append("# Without response there are no demonstrations: RL alone teaches the answer.")
    body = yaml.dump(fields, sort_keys=False, allow_unicode=True, width=100, Dumper=_Blocks)
    return "\n".join([*lines, body])


def settings_text(drafts: Sequence[Draft], domains: Sequence[Domain], settings: Path) -> str:
    """Write settings of a run on these tables.

    Args:
        drafts: how each table is read.
        domains: of their problems.
        settings: file of the settings, after which the released model is named.
    """
    shares = {domain.value: 1.0 for domain in domains}
    document: dict[str, object] = {
        "parent": "laptop",
        "curation": {
            "sources": [
                {"adapter": _beside(settings, one.file) if one.file else str(one.adapter)}
                | {"path": _beside(settings, one.table)}
                | ({"limit": FIRST_ROWS} if len(one.rows) > FIRST_ROWS else {})
                | ({"evaluation": True} if one.adapter in BENCHMARKS else {})
                | dict(one.terms)
                for one in drafts
            ]
        },
        "release": {"name": _release(settings), "rl_has_to_gain": False},
    }
    if shares:
        document |= {name: {"domains": dict(shares)} for name in ("rl_one", "rl_two")}
    note = RELEASED
    if any(len(one.rows) > FIRST_ROWS for one in drafts):
        note += FIRST_RUN.format(rows=FIRST_ROWS)
    return note + yaml.dump(
        document, sort_keys=False, allow_unicode=True, width=100, Dumper=_Blocks
    )


def write_drafts(
    tables: Sequence[Path],
    settings: Path,
    label: str = "",
    language: str = "",
    licence: str = "",
    responsible: str = "",
) -> None:
    """Draft the mappings of tables and settings that read them, show their rows, and write both.

    Args:
        tables: CSV, JSON lines or Parquet.
        settings: file to write; the mappings lie beside their tables.
        label: the column of the labels; '' = guess.
        language: a tag, or the column that has it; '' = guess.
        licence: of the tables; '' = not known.
        responsible: who answers for them; '' = not known.

    Raises:
        SettingsError: a file is there already or would be written twice, or a table has no column
            that could be an answer.
    """
    mappings = [(f"the mapping of {one}", one.with_name(f"{_name(one)}.yaml")) for one in tables]
    writers: dict[Path, str] = {}
    for what, file in [*mappings, ("", settings)]:
        if other := writers.get(file.resolve()):
            remedy = f"{what}; rename a table" if what else "the settings; name another --settings"
            raise SettingsError(f"{file} would be {other} and {remedy}")
        writers[file.resolve()] = what
        if file.exists():
            raise SettingsError(f"{file} is there already; remove it to draft it anew")
    terms = {"licence": licence, "responsible": responsible}
    drafts = [draft(table, label, language).with_terms(terms) for table in tables]
    console = Screen(soft_wrap=True)
    for one in drafts:
        console.print("\n".join(_preview(one)))
        if one.mapping and one.file:
            one.file.write_text(mapping_text(one.mapping, one.table))
    domains = list(dict.fromkeys(domain for one in drafts for domain in _domains(one)))
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(settings_text(drafts, domains, settings))
    files = ", ".join(str(file) for file in [*(one.file for one in drafts if one.file), settings])
    console.print(f"Wrote {files}. Correct what is guessed wrongly, then:")
    if max(len(one.rows) for one in drafts) > FIRST_ROWS:
        console.print(f"The first run reads {FIRST_ROWS:,} rows of a long table.")
    if not domains:
        console.print(
            "These are demonstrations only: add a table with answers, or a benchmark "
            "(evaluation: true), to measure a release with.",
        )
    for command in ("curate", "run"):
        line = shlex.join(["eachprompt", command, "--settings", str(settings)])
        console.print(f"{'' if command == 'run' else chr(10)}    {line}")


def _domains(one: Draft) -> list[Domain]:
    """Return the domains of the problems that are trained on."""
    if one.mapping:
        return [one.mapping.domain] if one.mapping.verifier else []
    if one.adapter in BENCHMARKS:
        return []
    records = [item.record for items in islice(one.items(), _TRIED) for item in items]
    return list(dict.fromkeys(one.domain for one in records if isinstance(one, Problem)))


def _preview(one: Draft) -> list[str]:
    """Render what is doubtful, the first rows as prompts with their answers, and what is blank."""
    lines = [f"{one.table}: {_kind(one)}", ""]
    lines += [line for remark in one.remarks for line in _wrapped(remark)]
    if one.mapping and one.label:
        blank = sum(not _is_present(row, one.label) for row in one.rows)
        if blank:
            words = f"{one.label} is empty in {blank:,} of {len(one.rows):,} rows"
            lines += _wrapped(f"{words}; they are left out.")
    lines += [""] * (lines[-1] != "")
    shown = 0
    for items in one.items():
        for item in items:
            record = item.record
            if isinstance(record, Demonstration) and len(items) > 1:
                lines += [f"    response  {record.response}", ""]
                continue
            lines += [f"    {line}" for line in record.prompt_text.splitlines()]
            if isinstance(record, Problem):
                lines.append(f"    answer    {record.answer}")
                lines += [""] * (len(items) == 1)
            else:
                lines += [f"    response  {record.response}", ""]
        if (shown := shown + 1) == SHOWN:
            break
    return [*lines, *_languages(one)]


def _kind(one: Draft) -> str:
    if one.mapping:
        return f"{one.mapping.domain.value}, source {one.mapping.name}"
    role = ", a benchmark: all of it is held out" if one.adapter in BENCHMARKS else ""
    return f"the layout of {one.adapter}, which is read without a mapping{role}"


def _languages(one: Draft) -> list[str]:
    """Show three rows of every language, where it was read from the prompts."""
    if one.mapping is None or "{" in str(one.mapping.language):
        return []
    samples: dict[str, list[str]] = {}
    for items in islice(one.items(), 200):
        text = " ".join(items[0].content.split())
        stated = items[0].record.language
        samples.setdefault(stated, []).append(text)
    lines: list[str] = []
    for tag, texts in sorted(samples.items()):
        lines += [f"    {tag:8}  {text[:64]}" for text in texts[:SHOWN]]
    return [*lines, ""] if len(samples) > 1 else []


def _wrapped(remark: str) -> list[str]:
    return textwrap.wrap(remark, 76, initial_indent="  * ", subsequent_indent="    ")


def _is_present(row: RawRow, label: str) -> bool:
    """True if a row has a label: not blank, and no word for a missing value."""
    cell: object = row.cells
    for part in parts_of(label, row.fields):
        if isinstance(cell, list):
            items = cast("list[object]", cell)
            cell = items[int(part)] if part.isdecimal() and int(part) < len(items) else None
        else:
            cell = cast("dict[str, object]", cell).get(part) if isinstance(cell, dict) else None
    return cell is not None and not is_missing(str(cell))


def _beside(settings: Path, file: Path) -> str:
    """Name a file as the settings do: from their own folder."""
    return str(file if file.is_absolute() else os.path.relpath(file, settings.parent))


def _release(settings: Path) -> str:
    """Name a model after the file of its settings, in the form that a registry takes."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", _plain(settings.stem))
    return name.strip("-.")[:_LONGEST_RELEASE] or "model"


def _name(path: Path) -> str:
    """Name a source after its file, in the form that mappings ask for."""
    stem = _plain(path.name.partition(".")[0]).lower()
    stem = re.sub(r"[^a-z0-9]+", "_", stem).strip("_")[:_LONGEST_NAME]
    if stem[:1].isalpha() and stem not in ADAPTERS:
        return stem
    return f"table_{stem or sha256_bytes(path.name.encode())[:8]}"


def _plain(text: str) -> str:
    """Write letters without their accents: café is cafe."""
    return "".join(one for one in normalize("NFKD", text) if not combining(one))


class _Blocks(yaml.SafeDumper):
    """Writes a text of several lines as a block, and with quotes what would be read as no text."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None if is_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Blocks.add_representer(str, _represent)
