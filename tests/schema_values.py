"""Values that a JSON schema of pydantic allows, and values near them, for hypothesis."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st

Schema = Mapping[str, Any]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NO_NULL = JSON.filter(lambda value: value is not None)
"""A client that has nothing to send sends no body."""
SLOW_DRAWS = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
"""A whole request takes longer to draw than hypothesis finds usual."""
_TEXT = 40
"""Characters of a text, where its schema allows more."""


def values(schema: Schema, definitions: Mapping[str, Schema]) -> st.SearchStrategy[Any]:
    """Draw what a schema allows.

    Args:
        schema: with the keywords that pydantic writes; an unknown type is a KeyError.
        definitions: what "$ref" names, by the last part of the reference.
    """
    if "$ref" in schema:
        return values(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return st.one_of([values(one, definitions) for one in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "type" not in schema:
        return JSON
    return _KINDS[schema["type"]](schema, definitions)


def near(schema: Schema, definitions: Mapping[str, Schema]) -> st.SearchStrategy[Any]:
    """Draw an object that a schema allows, of which one field is anything or one is too many."""

    def changed(pair: tuple[dict[str, Any], str, Any]) -> dict[str, Any]:
        value, name, other = pair
        return {**value, name: other}

    resolved = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    names = st.sampled_from([*resolved["properties"], "nobody"])
    return st.tuples(values(schema, definitions), names, JSON).map(changed)


def _texts(schema: Schema, _: Mapping[str, Schema]) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        longest = schema.get("maxLength", _TEXT)
        return st.from_regex(schema["pattern"], fullmatch=True).filter(lambda t: len(t) <= longest)
    most = min(schema.get("maxLength", _TEXT), _TEXT)
    return st.text(min_size=schema.get("minLength", 0), max_size=most)


def _integers(schema: Schema, _: Mapping[str, Schema]) -> st.SearchStrategy[int]:
    least = schema.get("minimum", schema.get("exclusiveMinimum", -(2**70)))
    return st.integers(least, schema.get("maximum", schema.get("exclusiveMaximum", 2**70) - 1))


def _numbers(schema: Schema, _: Mapping[str, Schema]) -> st.SearchStrategy[float]:
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    return st.floats(
        least,
        most,
        allow_nan=False,
        allow_infinity=False,
        exclude_min="exclusiveMinimum" in schema,
        exclude_max="exclusiveMaximum" in schema,
    )


def _arrays(schema: Schema, definitions: Mapping[str, Schema]) -> st.SearchStrategy[Sequence[Any]]:
    least = schema.get("minItems", 0)
    most = min(schema.get("maxItems", 3), max(3, least))
    return st.lists(values(schema["items"], definitions), min_size=least, max_size=most)


def _objects(schema: Schema, definitions: Mapping[str, Schema]) -> st.SearchStrategy[Any]:
    fields = schema.get("properties")
    if fields is None:
        return st.dictionaries(st.text(max_size=_TEXT), JSON, max_size=3)
    drawn = {name: values(one, definitions) for name, one in fields.items()}
    required = {name: drawn[name] for name in schema.get("required", ())}
    others = {name: one for name, one in drawn.items() if name not in required}
    return st.fixed_dictionaries(required, optional=others)


_KINDS = {
    "string": _texts,
    "integer": _integers,
    "number": _numbers,
    "array": _arrays,
    "object": _objects,
    "boolean": lambda *_: st.booleans(),
    "null": lambda *_: st.none(),
}
