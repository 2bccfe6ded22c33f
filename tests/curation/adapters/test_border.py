"""Every adapter and mapping: what is added to a row changes nothing, or a refusal names it."""

import copy
import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_schemas.mappings import ColumnMapping
from data_schemas.pass_rates import PASS_RATE
from data_schemas.rows import OUTSIDE, Problem, QuarantinedItem
from tasks.curation.adapters.table import ADAPTERS, adapt, read_file
from tasks.curation.items import Item, refuse_row
from tasks.curation.readers.cells import UnreadCell
from tasks.curation.rows import RawRow, ReadableCells
from tasks.formats.mapping_files import shipped_mappings
from tasks.gym.table import VERIFIERS
from tests.curation.adapters.test_table import EXAMPLES, NEEDS_ITS_LIBRARY
from tests.tables import for_each

MAPPINGS = shipped_mappings()
KEY = "zz_added"
Row = dict[str, object]
Place = tuple[str | int, ...]


def row_of(mapping: ColumnMapping) -> Row:
    """Return a row that a mapping reads, made from its own templates."""
    row: Row = {}
    for column in mapping.columns:
        parts = column.split(".")
        target: object = row
        for part, below in pairwise(parts):
            target = step(target, part, [] if below.isdecimal() else {})
        step(target, parts[-1], cell_of(mapping, column))
    return row


def step(target: object, part: str, value: object) -> object:
    """Go into an object or a list, in which a part that is not there yet is the value."""
    if isinstance(target, dict):
        return cast("Row", target).setdefault(part, value)
    cells = cast("list[object]", target)
    while len(cells) <= int(part):
        cells.append(value if len(cells) == int(part) else copy.deepcopy(value))
    return cells[int(part)]


def cell_of(mapping: ColumnMapping, column: str) -> object:
    template = f"{{{column}}}"
    if column in mapping.values:
        return next(iter(mapping.values[column]))
    if template == mapping.language:
        return "en"
    if any(name.startswith(PASS_RATE) and template == one for name, one in mapping.facets.items()):
        return 0.5
    if template in json.dumps(mapping.answer):
        return next(iter(mapping.options), "7")
    return f"What is {column}?"


ROWS = EXAMPLES | {name: row_of(mapping) for name, mapping in MAPPINGS.items()}
NAMES = sorted(name for name in (*ADAPTERS, *MAPPINGS) if name != NEEDS_ITS_LIBRARY)


def places(value: object, above: Place = ()) -> Iterator[tuple[Place, object]]:
    """Yield every value of a row with its path, from outside to inside."""
    yield above, value
    match value:
        case dict():
            parts = list(cast("Row", value).items())
        case list():
            parts = list(enumerate(cast("list[object]", value)))
        case _:
            return
    for name, part in parts:
        yield from places(part, (*above, name))


def with_value(row: Row, place: Place, value: object) -> Row:
    """Return a row with another value at a place; a KEY that is no value removes it."""
    result = copy.deepcopy(row)
    target: object = result
    for part in place[:-1]:
        target = target[part]  # type: ignore[index]
    target[place[-1]] = value  # type: ignore[index]
    return result


def without(row: Row, place: Place) -> Row:
    result = copy.deepcopy(row)
    target: object = result
    for part in place[:-1]:
        target = target[part]  # type: ignore[index]
    del target[place[-1]]  # type: ignore[attr-defined]
    return result


def read(name: str, row: Row, *, columnar: bool = False) -> list[Item] | QuarantinedItem:
    has_unread = any(isinstance(value, UnreadCell) for _, value in places(row))
    fields = ReadableCells(row) if has_unread else row
    raw = RawRow("raw-1", "0" * 64, fields, columnar)
    (result,) = adapt(name, 0, Path("raw_en.jsonl"), [raw], MAPPINGS.get(name))
    for item in [] if isinstance(result, QuarantinedItem) else result:
        if isinstance(item.record, Problem) and has_gold(item.record):
            # Curation refuses a gold that its verifier cannot read, with the verifier's words.
            verdict = VERIFIERS[item.record.verifier](item.record, "<think>")
            if verdict.abstained:
                return refuse_row(name, raw.key, raw.source_row, "bad_answer", verdict.detail)
    return result


def has_gold(problem: Problem) -> bool:
    """Whether reading the gold needs neither another library nor a judge."""
    return problem.verifier in VERIFIERS.data and problem.verifier != OUTSIDE


def is_used(found: list[Item]) -> bool:
    """Whether the key is part of what is asked, as those of a function's description are."""
    return all(KEY in item.record.model_dump_json() for item in found)


def names_one_of(refusal: QuarantinedItem, place: Place) -> bool:
    return any(str(part) in refusal.detail for part in place if isinstance(part, str))


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_row_that_a_mapping_asks_for_is_read(name: str):
    found = read(name, ROWS[name])

    assert not isinstance(found, QuarantinedItem), found
    assert found


@for_each("name", NAMES)
def test_a_key_at_any_depth_changes_nothing_or_is_named(name: str):
    row = ROWS[name]
    sound = read(name, row)
    for place, value in places(row):
        if isinstance(value, dict):
            found = read(name, with_value(row, (*place, KEY), "x"))
            if isinstance(found, QuarantinedItem):
                assert KEY in found.detail, (place, found)
            else:
                assert found == sound or is_used(found), (place, found)


@for_each("name", NAMES)
def test_a_null_of_a_column_store_is_an_absent_key_or_is_named(name: str):
    row = ROWS[name]
    for place, _ in places(row):
        if not place:
            continue
        found = read(name, with_value(row, place, None), columnar=True)
        if isinstance(found, QuarantinedItem):
            assert names_one_of(found, place), (place, found)
            continue
        texts = [item.record.model_dump_json() for item in found]
        assert not any("None" in text for text in texts), (place, texts)
        if isinstance(place[-1], str):
            absent = read(name, without(row, place), columnar=True)
            # A mapping names the columns that a row needs, and some may be blank.
            if name in MAPPINGS and isinstance(absent, QuarantinedItem):
                assert names_one_of(absent, place), place
            else:
                assert found == absent, place


@for_each("name", NAMES)
def test_an_unread_cell_is_of_no_use_to_any_adapter(name: str):
    row = ROWS[name]
    sound = read(name, row)
    for place, _ in places(row):
        if not place:
            continue
        found = read(name, with_value(row, place, UnreadCell("out of range")))
        if isinstance(found, QuarantinedItem):
            assert str(place[0]) in found.detail, (place, found)
            assert "unread_cell" == found.reason
        else:
            assert found == sound, place


COLUMNS = {
    "at": pa.array([2**60], pa.timestamp("ms")),
    "day": pa.array([datetime.date(2026, 3, 1)]),
    "clock": pa.array([datetime.time(9, 30)]),
    "span": pa.array([datetime.timedelta(days=2)]),
    "price": pa.array([Decimal("9.90")]),
    "ratio": pa.array([float("nan")]),
    "single": pa.array([0.1], pa.float32()),
    "bytes": pa.array([b"\xff"]),
    "word": pa.array(["a"]).dictionary_encode(),
    "pairs": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "object": pa.array([{"at": None, "names": ["a"]}]),
    "nothing": pa.nulls(1),
    "flag": pa.array([True]),
    "nanoseconds": pa.array([1], pa.timestamp("ns", tz="Asia/Bangkok")),
    "moment": pa.array([1], pa.time64("ns")),
    "half": pa.array([1.5], pa.float32()).cast(pa.float16()),
    "wide_price": pa.array([Decimal("1e40")], pa.decimal256(60, 2)),
    "fixed": pa.array([b"abcd"], pa.binary(4)),
    "large_text": pa.array(["a"], pa.large_string()),
    "large_bytes": pa.array([b"a"], pa.large_binary()),
    "large_list": pa.array([[1]], pa.large_list(pa.int8())),
    "pair": pa.array([[1, 2]], pa.list_(pa.int16(), 2)),
    "huge": pa.array([2**64 - 1], pa.uint64()),
    "moments": pa.array([[datetime.datetime(2026, 3, 1)]]),
    "nested_bytes": pa.array([{"image": {"bytes": b"\xff\xd8", "path": None}}]),
    "repeated_keys": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("name", ["gsm8k", "ae110k", "prompt_jsonl", "amazon_google", "big_math"])
def test_a_column_of_any_type_changes_nothing_or_is_named(tmp_path: Path, name: str):
    check_columns(tmp_path, name)


# A Parquet file cannot hold an object without keys.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in NAMES if not any(one == {} for _, one in places(ROWS[name]))]
)
def test_a_column_of_any_type_changes_nothing_in_any_adapter(tmp_path: Path, name: str):
    check_columns(tmp_path, name)


def check_columns(folder: Path, name: str) -> None:
    path = folder / "raw_en.parquet"
    sound = pa.Table.from_pylist([ROWS[name]])
    pq.write_table(sound, path)
    (expected,) = read_file(name, 0, path, MAPPINGS.get(name))
    assert not isinstance(expected, QuarantinedItem), expected
    for column, cells in COLUMNS.items():
        pq.write_table(sound.append_column(f"{KEY}_{column}", cells), path)
        (found,) = read_file(name, 0, path, MAPPINGS.get(name))
        if isinstance(found, QuarantinedItem):
            assert f"{KEY}_{column}" in found.detail
        else:
            assert [without_digest(one) for one in found] == [
                without_digest(one) for one in expected
            ]


def without_digest(item: Item) -> str:
    return json.dumps([item.record.model_dump(exclude={"source_row"}), dict(item.facets)])
