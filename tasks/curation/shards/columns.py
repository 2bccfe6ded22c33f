"""Items as columns of an Arrow file, from which any row can be read without reading the others."""

# pyright: basic
# pyarrow ships no types.

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from data_schemas.arrow import arrow_schema
from data_schemas.rows import Demonstration, Message, Problem, QuarantinedItem
from tasks.curation.items import Item
from tasks.curation.overlap.fingerprints import Hashes, join

ITEMS = pa.schema(
    [
        ("is_problem", pa.bool_()),
        *((name, pa.string()) for name in ("id", "domain", "language", "messages")),
        ("verifier", pa.string()),
        ("answer", pa.string()),
        ("parent", pa.string()),
        ("response", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.string()),
        ("level", pa.int64()),
        ("content", pa.string()),
        ("order", pa.int64()),
        ("evaluation", pa.bool_()),
        ("facets", pa.string()),
        ("answers", pa.string()),
        ("words", pa.list_(pa.uint64())),
    ]
)
"""Problems and demonstrations; what one of them has not is null. `order` is that of the source."""

_JSON = json.JSONEncoder(ensure_ascii=False)


def to_table(items: Sequence[Item], words: Sequence[Hashes]) -> pa.Table:
    """Write items and the words of their contents into columns."""
    columns: dict[str, list[object]] = {name: [] for name in ITEMS.names if name != "words"}
    messages: tuple[Message, ...] = ()
    turns = ""
    for item in items:
        record = item.record
        if record.messages != messages:  # a problem and its demonstrations have the same
            messages, turns = record.messages, _dump(record.messages)
        problem = record if isinstance(record, Problem) else None
        demonstration = record if isinstance(record, Demonstration) else None
        row = (
            problem is not None,
            record.id,
            record.domain.value,
            record.language,
            turns,
            problem and problem.verifier,
            problem and problem.answer,
            demonstration and demonstration.parent.value,
            demonstration and demonstration.response,
            record.source,
            record.source_row,
            problem and problem.level,
            item.content,
            item.source,
            item.evaluation,
            _JSON.encode(dict(item.facets)) if item.facets else None,
            item.answers and item.answers.model_dump_json(),
        )
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    values, ends = join(words)
    lists = pa.ListArray.from_arrays(ends.astype(np.int32), values)
    return pa.table({**columns, "words": lists}, schema=ITEMS)


def to_items(table: pa.Table) -> list[Item]:
    """Read items back."""
    return [_item(row) for row in table.drop_columns(["words"]).to_pylist()]


def refusals(quarantined: Sequence[QuarantinedItem]) -> pa.Table:
    """Write refusals into columns."""
    rows = [one.model_dump(mode="json") for one in quarantined]
    return pa.Table.from_pylist(rows, schema=arrow_schema(QuarantinedItem))


def _dump(messages: Sequence[Message]) -> str:
    """Write messages as `write_table` does."""
    turns = [{"content": one.content, "role": one.role.value} for one in messages]
    return _JSON.encode(turns)


def _item(row: dict[str, object]) -> Item:
    kind = Problem if row["is_problem"] else Demonstration
    fields = {name: row[name] for name in kind.model_fields}
    fields["messages"] = json.loads(str(row["messages"]))
    answers = row["answers"]
    return Item(
        record=kind.model_validate(fields),
        content=str(row["content"]),
        source=int(str(row["order"])),
        facets=json.loads(str(row["facets"])) if row["facets"] else {},
        evaluation=bool(row["evaluation"]),
        answers=None if answers is None else Problem.model_validate_json(str(answers)),
    )
