"""Names in the stead of places: what a release says of its origins to people of other machines.

A place (an absolute path, a `file://` or `s3://` uri, a host of the own network) is true on one
machine only and names its owner. What leaves a store has the last part of it, beside the digest of
the content.
"""

import re
from pathlib import PurePosixPath
from typing import cast
from urllib.parse import unquote

from pydantic import JsonValue

ORIGIN = "origin:"
"""Scheme of an input whose place is not told: origin:train.jsonl@3f2a9c01."""
_DIGITS = 8
_HUB_COPY = re.compile(r"(?:^|/)(hf/[^/]+/[^/]+/[0-9a-f]{40}/.+)")
"""Where copies of the hub's data sets lie, which everybody may know: hf/OWNER/NAME/COMMIT/FILE."""
_PLACE = re.compile(
    r"""
    (?:file://|s3://)[^\n"'<>|;,]*                     # file:///home/ann/rows.jsonl, s3://mine/rows
    | (?<![^\s=:,;"'(\[{|])                            # nothing, or what may stand before a path
      ~?/[^/\s:#=,;"'<>|][^/\n:#=,;"<>|]*              # /home
      (?:/[^/\n:#=,;"<>|]+)+/?                         # /ann/My Tables/rows.jsonl
    | (?<=[=:,\s"'(\[])~/[^\s:#=,;"'<>|]+|^~/[^\s:#=,;"'<>|]+  # ~/rows.jsonl
    """,
    re.VERBOSE,
)
_HOST = re.compile(
    r"""(?P<scheme>\b(?:https?|grpcs?)://)
    (?:[^/@\s]+@)?                                     # user:password@
    (?:\[[0-9a-fA-F:]+\]|[0-9.]+|[A-Za-z0-9-]+         # [::1], 10.0.0.7, gpu-node-3
       |[A-Za-z0-9.-]+\.(?:local|internal|intra|intranet|lan|corp|home))
    (?=[:/?\#\s]|$)""",
    re.VERBOSE,
)
_UNNAMED = "host"


def place_name(place: str) -> str:
    """Return the last part of a path or uri, of a copy of the hub all that says which.

    '' of the root.
    """
    path = unquote(re.sub(r"^[a-z0-9]+://", "", place)) if "://" in place else place
    if match := _HUB_COPY.search(path):
        return match[1]
    return PurePosixPath(path).name


def origin_name(place: str, digest: str) -> str:
    """Name what came from outside of a store, so that only the same content has the same name.

    Args:
        place: path or uri.
        digest: sha256 of the content.
    """
    return f"{place_name(place)}@{digest[:_DIGITS]}"


def without_places(value: JsonValue) -> JsonValue:
    """Replace every place in the texts and keys of a value by its name.

    A path of one part, as `/think`, is none. The function of its own result is the result.
    """
    match value:
        case str():
            return _HOST.sub(_host, _PLACE.sub(lambda match: place_name(match[0]), value))
        case list():
            return [without_places(item) for item in value]
        case dict():
            return {
                cast("str", without_places(key)): without_places(item)
                for key, item in value.items()
            }
        case _:
            return value


def _host(match: re.Match[str]) -> str:
    return match["scheme"] + _UNNAMED
