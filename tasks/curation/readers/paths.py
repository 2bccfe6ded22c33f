"""Paths into the cells of a row: `choices.text.0` is the first text of an object's list."""

from collections.abc import Container


def parts_of(path: str, names: Container[str]) -> list[str]:
    """Split a path into a column and its parts; the column's own name may have points.

    Of `label.responses.0` the column is `label.responses` if there is one, else `label`. A path to
    no column is split at every point.
    """
    column = path
    while column not in names:
        column, point, _ = column.rpartition(".")
        if not point:
            return path.split(".")
    return [column, *path[len(column) + 1 :].split(".")] if column != path else [path]
