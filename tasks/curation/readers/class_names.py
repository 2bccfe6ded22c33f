"""What the numbers of a column stand for, where a Parquet file says it."""

import json
from pathlib import Path

import pyarrow.parquet as pq


def classes_in(path: Path) -> dict[str, list[str]]:
    """Return what the numbers of columns stand for, as `datasets` writes it into a Parquet file.

    Nothing, where the file says nothing, or is no Parquet file.
    """
    if path.suffix.lower() != ".parquet":
        return {}
    try:
        about = json.loads((pq.read_schema(path).metadata or {}).get(b"huggingface", b"{}"))
        columns = about["info"]["features"].items()
        return {
            name: [str(text) for text in one["names"]]
            for name, one in columns
            if isinstance(one, dict) and one.get("_type") == "ClassLabel"
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
