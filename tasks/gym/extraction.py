"""Score the share of requested fields that a JSON answer gives correctly.

Gold: {"fields": {...}, "schema": JSON schema, "tolerance": relative, for numbers}; the last two are
optional. The schema is checked with the gold, before any response is read: one that is malformed,
refers to what is neither in it nor a published metaschema, applies itself without end or refuses
the gold's own fields is bad gold. Nothing is ever fetched.
Differs: texts are compared folded (`algorithms/folding.py`), because shops write both "XL" and
"xl".
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

import numpy as np
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from jsonschema_specifications import REGISTRY
from pydantic import Field, model_validator
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from data_schemas.json_text import refuse_constant
from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, response_fault, scored
from tasks.gym.protocol import Gold, verify_answer
from tasks.gym.reference_text import normalised

MAX_READ_AGAIN = 2_000_000
"""Characters read after braces that open no object; beyond it the text is no longer searched."""
FAILURE_COST = 2000
"""Extra characters charged per such brace, because the decoder computes its line number."""
MAX_ANSWERS = 100
"""Objects with the requested fields; a response with more counts as flooded."""
MAX_ITEMS = 200
"""Length of a list that is compared without order; a longer list must match in order."""
_REFERENCES = ("$ref", "$dynamicRef")


class Extraction(Gold):
    """The expected fields and the tolerance for numbers."""

    fields: dict[str, Any]
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    tolerance: float = Field(default=0.0, ge=0.0)

    @model_validator(mode="after")
    def _schema_can_be_applied(self) -> Self:
        # Here and not beside the response: curation has no response that would reach the fault.
        if self.schema_ is not None and (
            fault := _schema_fault(_dumped(self.schema_), _dumped(self.fields))
        ):
            raise ValueError(f"schema: {fault}"[:200])
        return self


def verify(problem: Problem, response: str) -> Verdict:
    """Score the last JSON object: share of right fields minus 1/(n+1) per unrequested field."""
    return verify_answer(problem, response, Extraction, _check)


def same_field(gold: Any, value: Any, tolerance: float) -> bool:
    """Compare with types: true is not 1, "1" is not 1, 1 is 1.0; the order of lists is ignored."""
    match gold, value:
        case (bool(), _) | (_, bool()):
            return gold is value
        case (int() | float(), int() | float()):
            return gold == value or _near(gold, value, tolerance)
        case str(), str():
            return normalised(gold) == normalised(value)
        case list(), list():
            return _same_list(gold, value, tolerance)
        case dict(), dict():
            return gold.keys() == value.keys() and all(
                same_field(gold[key], value[key], tolerance) for key in gold
            )
        case _:
            return gold is None and value is None


def _near(gold: float, value: float, tolerance: float) -> bool:
    try:
        return tolerance > 0 and abs(gold - value) <= tolerance * abs(gold)
    except OverflowError:  # an integer beyond floats
        return False


def _same_list(gold: list[Any], value: list[Any], tolerance: float) -> bool:
    """Match one to one by assignment: with a tolerance, a greedy match may be wrong."""
    if len(gold) != len(value) or len(gold) > MAX_ITEMS:
        return gold == value
    rows = [[same_field(a, b, tolerance) for b in value] for a in gold]
    same = np.array(rows, dtype=bool).reshape(len(gold), len(value))
    from scipy.optimize import linear_sum_assignment  # takes a second to import

    return bool(same[linear_sum_assignment(same, maximize=True)].all())


def _check(gold: Extraction, answer: str) -> Verdict:
    objects = list(json_objects(answer))
    if not objects:
        return scored(0.0, "no_json", "the answer holds no JSON object")
    # An earlier block with the same fields is also an answer: the worst of them counts.
    rivals = [(fields, once) for fields, once in objects[:-1] if fields.keys() & gold.fields.keys()]
    if len(rivals) >= MAX_ANSWERS:
        return response_fault("flooded", f"{len(rivals) + 1} objects about the same fields")
    verdicts = [
        _score_object(gold, fields) if once else scored(0.0, "repeated_key", f"{fields}"[:200])
        for fields, once in (*rivals, objects[-1])
    ]
    worst = min(verdicts, key=lambda verdict: -1.0 if verdict.score is None else verdict.score)
    if worst.score == verdicts[-1].score:
        return verdicts[-1]
    return worst.model_copy(update={"reason": "several_answers"})


def _score_object(gold: Extraction, fields: dict[str, Any]) -> Verdict:
    if gold.schema_ is not None:
        try:
            error = next(_validator(_dumped(gold.schema_)).iter_errors(fields), None)
        except RecursionError:  # the gold's own fields have been held against it
            return response_fault("too_deep", "the schema cannot be held against it")
        if error is not None:
            return scored(0.0, "schema_invalid", f"{error.json_path}: {error.message}"[:200])
    wrong = [
        k
        for k, v in gold.fields.items()
        if k not in fields or not same_field(v, fields[k], gold.tolerance)
    ]
    extra = sorted(fields.keys() - gold.fields.keys())
    num_fields = len(gold.fields)
    share = (num_fields - len(wrong)) / num_fields if num_fields else 1.0
    score = max(0.0, share - len(extra) / (num_fields + 1))
    if not wrong and not extra:
        return scored(1.0, "correct")
    return scored(
        score, "partial" if score > 0 else "wrong", f"wrong {wrong[:5]}, not asked for {extra[:5]}"
    )


def _dumped(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)


@lru_cache(maxsize=256)
def _validator(schema: str) -> Validator:
    parsed = json.loads(schema)
    kind = extend(
        validator_for(parsed, default=Draft202012Validator), {"multipleOf": _multiples_as_written}
    )
    # The published metaschemas and nothing else: by default a reference is fetched, also a file.
    return kind(parsed, registry=REGISTRY)


def _multiples_as_written(
    validator: Validator, unit: float, instance: Any, schema: dict[str, Any]
) -> Iterator[ValidationError]:
    """Hold a number against `multipleOf` by the decimals that stand in the JSON text.

    jsonschema divides binary floats, and so finds that 0.07 is no multiple of 0.01
    (findings/jsonschema_a_seventh_of_all_prices_is_no_multiple_of_a_cent.sh).
    """
    if validator.is_type(instance, "number") and (_written(instance) / _written(unit)) % 1:
        yield ValidationError(f"{instance!r} is not a multiple of {unit}")


def _written(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


@lru_cache(maxsize=256)
def _schema_fault(schema: str, fields: str) -> str:
    """Say why no answer can be held against a schema; '' if the gold's own fields can."""
    try:
        _check_schema(json.loads(schema))
        # All of them: what one error hides may apply itself without end.
        errors = list(_validator(schema).iter_errors(json.loads(fields)))
    except SchemaError as error:
        return error.message
    except Unresolvable as error:
        return f"{error.ref!r} is not in it"
    except (CycleError, RecursionError):
        return "it applies itself without end"
    except Exception as error:  # noqa: BLE001 - what stops the schema here stops it everywhere
        return f"{type(error).__name__} {error}"
    return f"it refuses the fields, {errors[0].json_path}: {errors[0].message}" if errors else ""


def _check_schema(schema: dict[str, Any]) -> None:
    """Check a schema and all that it refers to, also what few answers reach.

    Raises:
        SchemaError: it, or what a reference leads to, is malformed.
        Unresolvable: a reference leads nowhere, or out of the schema.
        CycleError: a part of it applies itself to the same value.
    """
    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    specification = specification_with(schema.get("$schema", ""), default=DRAFT202012)
    root = specification.create_resource(schema)
    waiting = [(root, REGISTRY.resolver_with_root(root))]
    applied: dict[int, list[int]] = {}  # by identity: schemas that the same value is held against
    while waiting:
        resource, resolver = waiting.pop()
        contents = resource.contents
        if id(contents) in applied or not isinstance(contents, dict):
            continue
        applied[id(contents)] = [id(one) for one in contents.get("allOf", ())]
        for keyword in _REFERENCES:
            if isinstance(contents.get(keyword), str):
                target = resolver.lookup(contents[keyword])
                kind.check_schema(target.contents)  # pyright: ignore[reportArgumentType]
                applied[id(contents)].append(id(target.contents))
                waiting.append((specification.create_resource(target.contents), target.resolver))
        waiting += [(one, resolver.in_subresource(one)) for one in resource.subresources()]
    TopologicalSorter(applied).prepare()


def json_objects(text: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the outermost objects in order, each with whether its keys are unique at all depths."""
    repeated: list[str] = []

    def pairs_read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            repeated.append("key")
        return value

    decoder = json.JSONDecoder(object_pairs_hook=pairs_read, parse_constant=refuse_constant)
    position, read_again = text.find("{"), 0
    while position >= 0 and read_again < MAX_READ_AGAIN:
        repeated.clear()
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            read_again += error.pos - position + FAILURE_COST
            end = position + 1
        except (ValueError, RecursionError):  # an integer too long, objects too deep
            read_again += len(text) - position + FAILURE_COST
            end = position + 1
        else:
            yield value, not repeated
        position = text.find("{", end)
