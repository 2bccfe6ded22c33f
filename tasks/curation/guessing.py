"""Guess a mapping from the header and the rows of a table: a draft that a person corrects."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from data_schemas.demonstrations import Parent
from data_schemas.mapping import TEXT, ColumnMapping
from data_schemas.prompts import Domain
from tasks.errors import DataError

Row = Mapping[str, object]

_LANGUAGE = ("language", "lang", "locale")
_LABEL = ("category", "label", "class", "sentiment", "rating", "stars", "intent", "cat", "tag")
_QUESTION = ("question", "prompt", "instruction", "query", "problem", "input", "ask")
_ANSWER = ("answer", "response", "output", "completion", "reply", "target", "solution")
_IDENTITY = re.compile(r"(?:^|[_ ])(?:id|sku|uuid|asin|url|link|image|date|time)(?:$|[_ ])")
_NUMBER = re.compile(r"[-+]?[\d.,]+")
_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_MOST_OPTIONS = 30
_LEAST_ROWS_PER_OPTION = 3
_LONG_OPTION = 40
"""Characters above which a value is no label."""
_USER = ("user", "human")
_SYSTEM = "system"


def guess_mapping(name: str, rows: Sequence[Row]) -> ColumnMapping:
    """Draft the mapping of a table.

    A chat becomes demonstrations, a column of few values a choice, a question with a number as its
    answer a problem of maths, and any other pair of texts demonstrations.

    Args:
        name: of the source.
        rows: of the table, all of them if labels are rare.

    Raises:
        DataError: there is no row, or no column that could be an answer.
    """
    if not rows:
        raise DataError(f"{name} has no row")
    shared = {"name": name, "language": _language(rows), "parent": Parent.COMMERCE}
    chat = _chat(rows)
    if chat:
        return ColumnMapping.model_validate(shared | {"domain": Domain.GENERAL} | chat)
    texts = _texts(rows)
    if label := _label(rows, texts):
        return ColumnMapping.model_validate(shared | _choice(rows, texts, label))
    ask, answer = _named(texts, _QUESTION), _named(texts, _ANSWER)
    if not ask or not answer:
        raise DataError(
            f"{name} has the columns {', '.join(rows[0])}, and none of them is an answer: a label "
            f"of at most {_MOST_OPTIONS} values, {', '.join(_ANSWER[:3])}, or messages. Write the "
            "mapping by hand (tasks/curation/README.md)"
        )
    asked = {"prompt": f"{{{ask}}}", "response": f"{{{answer}}}"}
    if all(_NUMBER.fullmatch(_text(row, answer)) for row in rows):
        maths = {"domain": Domain.MATHS, "verifier": "final_answer"}
        gold = {"answer": {"value": f"{{{answer}}}"}, "response": f"Answer: {{{answer}}}"}
        return ColumnMapping.model_validate(shared | asked | maths | gold)
    return ColumnMapping.model_validate(shared | asked | {"domain": Domain.GENERAL})


def _chat(rows: Sequence[Row]) -> dict[str, str]:
    """Return the templates of the first question and its answer in a list of messages."""
    for column, value in rows[0].items():
        if not isinstance(value, list) or not value or not isinstance(value[0], Mapping):
            continue
        first = cast("Mapping[str, object]", value[0])
        role, said = ("role", "content") if "role" in first else ("from", "value")
        if role not in first or said not in first:
            continue
        has_system = first[role] == _SYSTEM
        if not has_system and first[role] not in _USER:
            continue
        ask = int(has_system)
        parts = {"prompt": ask, "response": ask + 1} | ({"system": 0} if has_system else {})
        return {part: f"{{{column}.{place}.{said}}}" for part, place in parts.items()}
    return {}


def _texts(rows: Sequence[Row]) -> list[str]:
    """Name the columns of scalars that are in every row."""
    scalars = (str, int, float)
    return [
        name
        for name in rows[0]
        if all(isinstance(row.get(name), scalars) for row in rows)
        and not set(name) & set("{}.[]:!")
    ]


def _language(rows: Sequence[Row]) -> str:
    for name in rows[0]:
        if name.lower() in _LANGUAGE and all(_TAG.fullmatch(_text(row, name)) for row in rows):
            return f"{{{name}}}"
    return TEXT


def _label(rows: Sequence[Row], texts: Sequence[str]) -> str:
    """Name the column of labels: by its name, or else the last one of few values; '' if none."""
    fits: list[str] = []
    for name in texts:
        counts = Counter(_text(row, name) for row in rows)
        is_identity = _IDENTITY.search(name.lower()) or name.lower() in _LANGUAGE
        if (
            not is_identity
            and 2 <= len(counts) <= _MOST_OPTIONS
            and len(rows) >= _LEAST_ROWS_PER_OPTION * len(counts)
            and all(value and len(value) <= _LONG_OPTION for value in counts)
        ):
            fits.append(name)
    return _named(fits, _LABEL) or (fits[-1] if fits else "")


def _choice(rows: Sequence[Row], texts: Sequence[str], label: str) -> dict[str, object]:
    options = sorted({_text(row, label) for row in rows})
    shown: list[str] = []
    facets: dict[str, str] = {}
    for name in texts:
        if name == label or name.lower() in _LANGUAGE or _IDENTITY.search(name.lower()):
            continue
        if all(_NUMBER.fullmatch(_text(row, name)) for row in rows):
            facets[name] = f"{{{name}}}"
        else:
            shown.append(name)
    if not shown:
        raise DataError(f"no column is left to ask about, beside the label {label}")
    listed = f"{', '.join(options[:-1])} or {options[-1]}"
    lines = [f"Which {label.replace('_', ' ')} is this: {_escaped(listed)}?"]
    lines += [f"{_escaped(name)}: {{{name}}}" for name in shown]
    return {
        "domain": Domain.CHOICE,
        "prompt": "\n".join(lines),
        "verifier": "choice",
        "answer": {"correct": [f"{{{label}}}"]},
        "options": options,
        "response": f"{{{label}}}",
        "facets": facets,
    }


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _named(columns: Sequence[str], names: Sequence[str]) -> str:
    lower = {column.lower(): column for column in columns}
    return next((lower[name] for name in names if name in lower), "")


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value).strip()
