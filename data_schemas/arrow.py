"""Records to parquet and back, with the bad row named.

Nested values (chat turns, weight maps) are stored as canonical JSON strings, so that
every table opens in any parquet reader.
"""

# pyright: basic
# pyarrow ships no types.

import json
import types
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

Record = TypeVar("Record", bound=BaseModel)

_SCALARS: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}


GROUP_ROWS = 65_536
GROUP_BYTES = 64 * 2**20
"""Largest size of a row group of a table that is written as a stream."""


class SchemaError(ValueError):
    """A table or row does not fit its record class; the message names the row and field."""


def arrow_schema(record: type[BaseModel]) -> pa.Schema:
    """Derive the parquet schema of a record class; nested fields become JSON strings.

    Its metadata has the name of the class without the module, so that a file that moves changes
    no byte of a table, and no digest.
    """
    return pa.schema(
        [
            pa.field(name, *_arrow_type(field.annotation))
            for name, field in record.model_fields.items()
        ],
        metadata={"record": record.__name__},
    )


def write_table(path: Path, record: type[BaseModel], rows: Iterable[BaseModel]) -> int:
    """Write rows as one parquet file and return how many there were."""
    schema = arrow_schema(record)
    nested = _nested_names(record)
    dumped = [row.model_dump(mode="json") for row in rows]
    for row in dumped:
        for name in nested:
            row[name] = json.dumps(row[name], ensure_ascii=False, sort_keys=True)
    # Without a schema the first row would decide which columns there are
    # (findings/pyarrow_from_pylist_forgets_later_keys.sh).
    pq.write_table(pa.Table.from_pylist(dumped, schema=schema), path, compression="zstd")
    return len(dumped)


def write_columns(
    path: Path, record: type[BaseModel], columns: Mapping[str, Sequence[object]]
) -> None:
    """Write one parquet file from whole columns, for tables too long for a record per row."""
    table = pa.table(dict(columns), schema=arrow_schema(record))
    pq.write_table(table, path, compression="zstd")


def write_stream(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """Write tables one after the other as one parquet file, and return how many rows they have.

    Row groups end with the table that reaches GROUP_ROWS or GROUP_BYTES, so that neither writing
    nor reading the file takes more memory than one of them.
    """
    total = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        waiting: list[pa.Table] = []
        for table in tables:
            total += len(table)
            waiting.append(table.select(schema.names).cast(schema))
            rows, size = sum(map(len, waiting)), sum(each.nbytes for each in waiting)
            if rows >= GROUP_ROWS or size >= GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting).combine_chunks())
                waiting = []
        if waiting or not total:
            writer.write_table(pa.concat_tables([schema.empty_table(), *waiting]).combine_chunks())
    return total


def read_table(path: Path, record: type[Record], *, retired: Collection[str] = ()) -> list[Record]:
    """Read a parquet file written by `write_table`.

    Args:
        retired: columns that files of earlier versions have and the record has no more; not read.

    Raises:
        SchemaError: the file is not parquet, a column without a default is missing or a row is
            invalid.
    """
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise SchemaError(f"{path} is not a readable parquet file: {error}") from error
    table = table.drop_columns([name for name in table.column_names if name in retired])
    missing = [
        name
        for name, field in record.model_fields.items()
        if field.is_required() and name not in table.column_names
    ]
    if missing:
        raise SchemaError(f"{path} lacks the columns {missing} of {record.__name__}")
    return parse_rows(table.to_pylist(), record, where=str(path))


def distinct_values(path: Path, column: str) -> set[str]:
    """Read the different values of one column of text; the other columns are not read."""
    return set(pq.read_table(path, columns=[column])[column].unique().to_pylist())


def column_names(path: Path) -> list[str]:
    """Name the columns of a parquet file.

    Raises:
        SchemaError: the file is not parquet.
    """
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise SchemaError(f"{path} is not a readable parquet file: {error}") from error


def parse_rows(rows: Sequence[dict[str, Any]], record: type[Record], *, where: str) -> list[Record]:
    """Validate raw dictionaries; nested fields may be JSON strings.

    Raises:
        SchemaError: names the first bad row and its fields.
    """
    nested = _nested_names(record)
    parsed: list[Record] = []
    for index, row in enumerate(rows):
        try:
            decoded = {
                key: json.loads(value) if key in nested and isinstance(value, str) else value
                for key, value in row.items()
            }
            parsed.append(record.model_validate(decoded))
        except (ValidationError, json.JSONDecodeError) as error:
            raise SchemaError(f"{where}, row {index}: {_in_one_line(error)}") from error
    return parsed


def _in_one_line(error: ValidationError | json.JSONDecodeError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"bad JSON: {error}"
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or 'row'}: {item['msg']}"
        for item in error.errors()
    )


def _arrow_type(annotation: Any) -> tuple[pa.DataType, bool]:
    """Return (type, nullable)."""
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        inner = [part for part in typing.get_args(annotation) if part is not type(None)]
        return _arrow_type(inner[0])[0], True
    if annotation in _SCALARS:
        return _SCALARS[annotation], False
    return pa.string(), False  # enums are their value, everything nested is JSON


def _nested_names(record: type[BaseModel]) -> set[str]:
    return {
        name
        for name, field in record.model_fields.items()
        if typing.get_origin(field.annotation) in (tuple, list, dict)
        or (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel))
    }
