"""Which models an evaluation compares, as the command line names them.

    path/to/model,models:/NAME@alias,http://host:8000/v1#served-name,tuned=s3://bucket/model

A name in front of `=` is that of the table's column; without one, it is the end of the address.
"""

import re
from collections.abc import Sequence

from data_schemas.addresses import has_credentials, redacted, split_base_url
from data_schemas.artifacts import CandidateRef
from data_schemas.machine_settings import MachineSettings, Precision
from tasks.engines.support import in_precision
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


def parse_precisions(
    text: str, candidates: Sequence[CandidateRef], engines: MachineSettings
) -> list[Precision]:
    """Parse 'bf16,int8': precisions in which a model is compared with itself; '' are none.

    Args:
        text: of the command line.
        candidates: what is evaluated.
        engines: that evaluate it; their precision is the reference.

    Raises:
        SettingsError: a word is no precision, is the reference, or is one that the engine lacks;
            or what is evaluated is not one model whose weights are at hand.
    """
    words = [word.strip() for word in text.split(",")] if text else []
    if words and (len(candidates) != 1 or candidates[0].served_as):
        raise SettingsError(
            "--precision compares a model with itself, quantised: give one --model, whose weights "
            "are at hand"
        )
    precisions: list[Precision] = []
    for word in words:
        if word not in [*Precision]:
            raise SettingsError(f"--precision: {word!r} is none of {', '.join(Precision)}")
        precision = Precision(word)
        if precision in (engines.precision, *precisions):
            raise SettingsError(
                f"--precision: {word} is there already; that of evaluation.engines, "
                f"{engines.precision}, is what the others are compared with"
            )
        in_precision(engines, precision)
        precisions.append(precision)
    return precisions


def in_precisions(
    candidates: Sequence[CandidateRef], precisions: Sequence[str]
) -> list[CandidateRef]:
    """Add a model once more in each precision, as NAME/int8."""
    return [*candidates] + [
        one.model_copy(update={"name": f"{one.name}/{precision}", "precision": precision})
        for one in candidates
        for precision in precisions
    ]


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
