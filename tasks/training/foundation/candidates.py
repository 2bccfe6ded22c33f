"""Which models an evaluation compares, as the command line names them.

    path/to/model,models:/NAME@alias,http://host:8000/v1#served-name,tuned=s3://bucket/model

A name in front of `=` is that of the table's column; without one, it is the end of the address.
"""

import re

from data_schemas.addresses import has_credentials, redacted, split_base_url
from data_schemas.artifacts import CandidateRef
from tasks.errors import SettingsError

_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][\w.@+-]*(?:/[\w.@+-]+)*)=(?P<address>.*)", re.DOTALL)
_ENDPOINT = ("http://", "https://")
EXAMPLE = "path/to/model,http://host:8000/v1#served-name"


def parse_candidates(text: str) -> list[CandidateRef]:
    """Parse 'address,name=address'.

    Raises:
        SettingsError: an entry is no address, or two models have the same name.
    """
    models = [_parse(entry.strip()) for entry in text.split(",")]
    names = [model.name for model in models]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise SettingsError(
            f"--model: two models are called {twice[0]!r}; name them: first=ADDRESS,second=ADDRESS"
        )
    return models


def _parse(entry: str) -> CandidateRef:
    match = _NAMED.fullmatch(entry)
    name, address = (match["name"], match["address"]) if match else ("", entry)
    if address.startswith(_ENDPOINT):
        return _endpoint(name, address)
    end = address.rstrip("/").rpartition("/")[2]
    label = name or re.sub(r"[^\w.@+-]", "-", end) or "shipped"
    return CandidateRef(name=label, address=address)


def _endpoint(name: str, address: str) -> CandidateRef:
    """Split the served name from the base URL.

    Raises:
        SettingsError: one of them is missing or malformed.
    """
    url, _, served_as = address.partition("#")
    if has_credentials(address):
        raise SettingsError(
            f"--model: {redacted(address)} has credentials in it, which would be recorded; give "
            "the key in EACHPROMPT_ENDPOINT_KEYS, as host=key"
        )
    try:
        base = split_base_url(url).geturl()
    except ValueError as error:
        raise SettingsError(f"--model: {error}. Example: {EXAMPLE}") from error
    if not served_as.strip():
        raise SettingsError(
            f"--model: {url} names no model; write {url}#NAME with a name from {base}/models"
        )
    label = name or re.sub(r"[^\w.@+/-]", "-", served_as)
    return CandidateRef(name=label, address=base, served_as=served_as)
