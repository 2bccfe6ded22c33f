"""One-line messages for invalid settings: field, value, allowed values and a suggested name.

pydantic's own text of a fault has three lines and a link.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from data_schemas.addresses import redacted

MAX_VALUE_CHARS = 60
_KIND = re.compile(r"constrained-\w+|literal\[.*\]")
"""What pydantic adds to the place of a value that may be a number or a word: the kind it tried."""


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Describe the first fault of what was given for a model, and count the others."""
    faults = error.errors(include_url=False)
    places = {tuple(_place(fault)) for fault in faults}
    others = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
    return _sentence(faults[0], model) + _word_instead(faults) + others


def _word_instead(faults: Sequence[ErrorDetails]) -> str:
    """Name the word that may stand in place of the number that is wrong."""
    first, *rest = faults
    words = (fault for fault in rest if fault["type"] == "literal_error")
    same = (fault for fault in words if _place(fault) == _place(first))
    return "".join(f", or be {fault.get('ctx', {}).get('expected')}" for fault in same)


def _sentence(fault: ErrorDetails, model: type[BaseModel]) -> str:
    path = _place(fault)
    where, message = dotted(path), fault["msg"]
    match fault["type"]:
        case "extra_forbidden":
            names = list(_fields_at(model, path[:-1]))
            word = str(path[-1])
            places = _places_of(word, model)
            near = did_you_mean(word, names) or (places and f"it is one of {', '.join(places)}")
            return f"{where} is not a setting; {near or _likely(word, names)}"
        case "missing":
            return f"{where} is missing"
        case "value_error":
            reason = message.removeprefix("Value error, ")
            return f"{where}: {reason}" if where else reason
        case _:
            allowed = re.sub(r"^\w+ should", "must", message)
            value = shortened(fault["input"])
            return f"{where or 'the value'} is {value}; it {allowed}{_likely_choice(fault)}"


def _place(fault: ErrorDetails) -> list[int | str]:
    return [part for part in fault["loc"] if part != "[key]" and not _KIND.fullmatch(str(part))]


def dotted(path: Iterable[int | str]) -> str:
    """Write the place of a field as it is read: curation.sources[0].path."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def shortened(value: object) -> str:
    """A value as it was given, cut where it fills the line."""
    text = redacted(repr(value) if isinstance(value, str) else str(value))
    text = " ".join(text.split())
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[: MAX_VALUE_CHARS - 3]}..."


def did_you_mean(word: str, words: Sequence[str]) -> str:
    """Name the word that was probably meant; '' if none is near."""
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean `{near[0]}`?" if near else ""


def _likely(word: str, words: Sequence[str]) -> str:
    return did_you_mean(word, words) or (f"choose from {', '.join(words)}" if words else "none is")


def _places_of(word: str, model: type[BaseModel]) -> list[str]:
    """Name the groups that have a setting of this name: it may be written one level too high."""
    places: list[str] = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            places += [name] if word in kind.model_fields else []
            places += [f"{name}.{inner}" for inner in _places_of(word, kind)]
    return places


def _likely_choice(fault: ErrorDetails) -> str:
    if fault["type"] != "enum" or not isinstance(fault["input"], str):
        return ""
    expected = str(fault.get("ctx", {}).get("expected", ""))
    near = did_you_mean(fault["input"], expected.split("'")[1::2])
    return f"; {near}" if near else ""


def _fields_at(model: type[BaseModel], path: Sequence[int | str]) -> Iterable[str]:
    """Names of the fields of the group at a place; a list or tuple is of one kind of group."""
    kind: Any = model
    for part in path:
        if isinstance(part, int):
            kind = next(one for one in get_args(kind) if isinstance(one, type))
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = kind.model_fields[part].annotation
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else ()
