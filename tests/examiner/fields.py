"""Classes of answers to attribute extraction: the same object in other JSON, and other objects."""

import json
import random
import unicodedata
from typing import Any

from tests.examiner.case import AnswerClass, Question

Fields = dict[str, str]


def layout(question: Question, source: random.Random) -> str:
    fields: Fields = question.facts
    indent = source.choice((None, 0, 1, 2, 4))
    separators = source.choice(((",", ":"), (", ", ": "), (" , ", " : ")))
    return json.dumps(
        fields, indent=indent, separators=separators, ensure_ascii=source.random() < 0.5
    )


def key_order(question: Question, source: random.Random) -> str | None:
    keys = list(question.facts)
    source.shuffle(keys)
    if keys == list(question.facts):
        return None
    return json.dumps({key: question.facts[key] for key in keys}, ensure_ascii=False)


def fenced(question: Question, source: random.Random) -> str:
    form = source.choice(
        ("```json\n{}\n```", "```\n{}\n```", "~~~json\n{}\n~~~", "```json\r\n{}\r\n```\r\n")
    )
    return form.format(json.dumps(question.facts, indent=2, ensure_ascii=False))


def prose(question: Question, source: random.Random) -> str:
    form = source.choice(
        (
            "Here is the result:\n\n{}\n\nLet me know if you need anything else.",
            "The attributes are:\n```json\n{}\n```\nThat is all the title states.",
            "**Result**\n\n{}",
        )
    )
    return form.format(json.dumps(question.facts, ensure_ascii=False))


def spelling(question: Question, source: random.Random) -> str | None:
    """Change what the contract folds: case, spaces, full-width characters."""
    fields = dict(question.facts)
    key = source.choice(list(fields))
    value = fields[key]
    changed = source.choice((value.upper(), value.lower(), f" {value} ", value.replace(" ", "  ")))
    fields[key] = changed
    same = _folded(changed) == _folded(value)
    return json.dumps(fields, ensure_ascii=False) if same and changed != value else None


def thinking(question: Question, source: random.Random) -> str:
    key = source.choice(list(question.facts))
    draft = json.dumps({**question.facts, key: "unknown"})
    return f"<think>First draft: {draft}. That is not right.</think>\n{json.dumps(question.facts)}"


def value_changed(question: Question, source: random.Random) -> str | None:
    fields = dict(question.facts)
    key = source.choice(list(fields))
    fields[key] = _another(fields[key], source)
    return _unless_same(question, fields)


def values_swapped(question: Question, source: random.Random) -> str | None:
    fields = dict(question.facts)
    if len(fields) < 2:
        return None
    a, b = source.sample(list(fields), 2)
    fields[a], fields[b] = fields[b], fields[a]
    return _unless_same(question, fields)


def field_missing(question: Question, source: random.Random) -> str:
    fields = dict(question.facts)
    del fields[source.choice(list(fields))]
    return json.dumps(fields, ensure_ascii=False)


def field_added(question: Question, source: random.Random) -> str | None:
    name = source.choice(("Note", "Confidence", "Other"))
    return None if name in question.facts else json.dumps({**question.facts, name: "n/a"})


def key_renamed(question: Question, source: random.Random) -> str:
    key = source.choice(list(question.facts))
    return json.dumps({f"{k}s" if k == key else k: v for k, v in question.facts.items()})


def duplicate_key(question: Question, source: random.Random) -> str | None:
    """Give one field twice, with the right value first or last."""
    fields: Fields = question.facts
    key = source.choice(list(fields))
    other = _another(fields[key], source)
    if _folded(other) == _folded(fields[key]):
        return None
    twice = [(key, fields[key]), (key, other)]
    source.shuffle(twice)
    pairs = [*twice, *((k, v) for k, v in fields.items() if k != key)]
    return "{" + ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in pairs) + "}"


def second_object(question: Question, source: random.Random) -> str | None:
    fields: Fields = question.facts
    key = source.choice(list(fields))
    other = {**fields, key: _another(fields[key], source)}
    if _unless_same(question, other) is None:
        return None
    objects = [json.dumps(fields), json.dumps(other)]
    source.shuffle(objects)
    return "\n\nor\n\n".join(objects)


def other_type(question: Question, source: random.Random) -> str:
    fields: dict[str, Any] = dict(question.facts)
    key = source.choice(list(fields))
    fields[key] = source.choice(([fields[key]], {"value": fields[key]}, None, 1, True))
    return json.dumps(fields)


def wrapped(question: Question, source: random.Random) -> str:
    name = source.choice(("attributes", "result", "product"))
    return json.dumps({name: question.facts})


def broken(question: Question, source: random.Random) -> str:
    text = json.dumps(question.facts)
    forms = (
        text[:-1],
        text.replace('"', "'") if "'" not in text and '\\"' not in text else text[:-2],
        "I cannot extract that.",
        text.replace(":", "=", 1)[1:],
        f"<think>{text}</think>",
    )
    return source.choice(forms)


def _another(value: str, source: random.Random) -> str:
    """Change one letter or digit."""
    places = [place for place, char in enumerate(value) if char.isascii() and char.isalnum()]
    if not places:
        return f"{value} 2"
    place = source.choice(places)
    pool = "0123456789" if value[place].isdigit() else "abcdefghijklmnopqrstuvwxyz"
    new = source.choice([char for char in pool if char != value[place].lower()])
    return value[:place] + new + value[place + 1 :]


def _unless_same(question: Question, fields: Fields) -> str | None:
    same = all(_folded(fields[key]) == _folded(value) for key, value in question.facts.items())
    return None if same else json.dumps(fields, ensure_ascii=False)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


RIGHT = (
    AnswerClass("layout", True, "indents, separators, escapes", '{"a": "b"} -> {"a":"b"}', layout),
    AnswerClass(
        "key_order",
        True,
        "the keys in another order",
        '{"a": 1, "b": 2} -> {"b": 2, "a": 1}',
        key_order,
    ),
    AnswerClass("fenced", True, "a code fence", '{"a": 1} -> ```json {"a": 1} ```', fenced),
    AnswerClass(
        "prose",
        True,
        "sentences around the object",
        '{"a": 1} -> The attributes are: {"a": 1}',
        prose,
    ),
    AnswerClass("spelling", True, "what the verifier folds: case and spaces", "XL -> xl", spelling),
    AnswerClass(
        "thinking",
        True,
        "another object within the thinking",
        '{"a": 1} -> <think>{"a": 2}</think> {"a": 1}',
        thinking,
    ),
)
WRONG = (
    AnswerClass(
        "value_changed",
        False,
        "one letter or digit of a value changed",
        "40mm -> 41mm",
        value_changed,
    ),
    AnswerClass(
        "values_swapped",
        False,
        "the values of two fields change places",
        '{"a": 1, "b": 2} -> {"a": 2, "b": 1}',
        values_swapped,
    ),
    AnswerClass(
        "field_missing", False, "a field left out", '{"a": 1, "b": 2} -> {"a": 1}', field_missing
    ),
    AnswerClass(
        "field_added",
        False,
        "a field nobody asked for",
        '{"a": 1} -> {"a": 1, "Note": "n/a"}',
        field_added,
    ),
    AnswerClass(
        "key_renamed", False, "a key with another name", '{"Size": 1} -> {"Sizes": 1}', key_renamed
    ),
    AnswerClass(
        "duplicate_key",
        False,
        "a key twice, with two values",
        '{"a": 4} -> {"a": 4, "a": 5}',
        duplicate_key,
    ),
    AnswerClass(
        "second_object",
        False,
        "two objects that contradict each other",
        '{"a": 4} -> {"a": 4} or {"a": 5}',
        second_object,
    ),
    AnswerClass(
        "other_type",
        False,
        "a value in a list or object, null, a number",
        '"XL" -> ["XL"]',
        other_type,
    ),
    AnswerClass(
        "wrapped",
        False,
        "the object within another object",
        '{"a": 1} -> {"result": {"a": 1}}',
        wrapped,
    ),
    AnswerClass("broken", False, "no JSON, or only within the thinking", "{'a': 1}", broken),
)
