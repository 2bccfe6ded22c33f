"""What the numbers of a column stand for, where a Parquet file says it."""

import json
from pathlib import Path

import pyarrow.parquet as pq


def classes_in(path: Path) -> dict[str, list[str]]:
    """Return what the numbers of columns stand for, as `datasets` writes it into a Parquet file.

    Of a column of lists, `labels.0` has the names of their parts. Nothing, where the file says
    nothing, or is no Parquet file.
    """
    if path.suffix.lower() != ".parquet":
        return {}
    try:
        about = json.loads((pq.read_schema(path).metadata or {}).get(b"huggingface", b"{}"))
        columns = about["info"]["features"].items()
        return {
            path: [str(text) for text in one["names"]]
            for name, feature in columns
            for path, one in ((name, feature), (f"{name}.0", _part_of(feature)))
            if isinstance(one, dict) and one.get("_type") == "ClassLabel"
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _part_of(feature: object) -> object:
    """Return the feature of the parts of a list; None if there are none."""
    return feature.get("feature") if isinstance(feature, dict) else None
