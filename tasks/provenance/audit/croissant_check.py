"""Comparison of a data set's Croissant metadata with the manifest of its object."""

import json
from collections.abc import Iterator, Mapping


def croissant_problems(metadata: bytes, listed: Mapping[str, str]) -> Iterator[str]:
    """Yield every digest in the metadata that is not the file's.

    Args:
        metadata: the file's content.
        listed: files of the same object, with the sha256 that its manifest has.
    """
    try:
        for file in json.loads(metadata)["distribution"]:
            name, claimed = file["contentUrl"], file["sha256"]
            if listed.get(name) != claimed:
                entry = listed.get(name, "unknown: there is no such file")
                yield f"{name} has sha256 {claimed}, its object's manifest {entry}"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        yield f"is no Croissant metadata of this version: {error!r:.200}"
