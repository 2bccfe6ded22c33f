"""Which adapters' rows an artifact consists of: a fact of the statements that lead to a model.

Tables of rows have a column `source`, the name of the adapter that read the row. A stage inherits
the sources of everything it reads, so that a checkpoint names those of all its ancestors.
"""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data_schemas.statements import Statement
from tasks.provenance.lineage.descriptions import ROW_SOURCE

_COLUMN = "source"


def sources_in(folder: Path) -> set[str]:
    """Read the sources of all tables directly in a folder; what is no table has none."""
    results: set[str] = set()
    for path in folder.glob("*.parquet"):
        try:
            if _COLUMN in pq.read_schema(path).names:
                column = pq.read_table(path, columns=[_COLUMN])[_COLUMN]
                results |= {str(name) for name in column.unique().to_pylist() if name}
        except pa.ArrowInvalid:
            continue
    return results


def inherited(statement: Statement) -> set[str]:
    """Return the sources that a statement names."""
    return {name for name in str(statement.facts.get(ROW_SOURCE, "")).split(",") if name}


def row_source_fact(names: Iterable[str]) -> dict[str, float | int | str]:
    """Return the fact that names sources; empty without any."""
    named = ",".join(sorted(names))
    return {ROW_SOURCE: named} if named else {}
