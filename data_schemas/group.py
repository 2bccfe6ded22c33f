"""Base class of every group of settings."""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from data_schemas.addresses import has_credentials, redacted

LARGEST = 2**53
"""JSON readers may round larger integers."""
LARGEST_SEED = 2**32 - 1
"""Largest seed accepted by numpy, torch and vLLM."""
Seed = Annotated[
    int, Field(ge=0, le=LARGEST_SEED, description="for everything random in the stage")
]
LOWEST_TEMPERATURE = 0.01
"""Logits divided by less overflow; vLLM raises smaller ones to it as well."""

Whole = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


def no_schema(schema: dict[str, Any]) -> None:
    """Empty the schema: Flyte would print it in `--help`, where it fills ten screens."""
    schema.clear()


def are_shares(weights: Iterable[float]) -> bool:
    """True if all weights are positive and their sum is finite, so that each is a share of it."""
    weights = list(weights)
    return min(weights, default=1.0) > 0.0 and math.isfinite(sum(weights))


def merged_over(default: BaseModel, given: Mapping[str, object]) -> dict[str, object]:
    """Return the values of a group: those given, and elsewhere those of `default`.

    Groups within are merged likewise. Any other value, such as shares by domain, is replaced as a
    whole. Unknown keys are kept, for the group's validation to refuse.
    """
    values = {name: getattr(default, name) for name in type(default).model_fields}
    for name, value in given.items():
        own = values.get(name)
        if isinstance(own, BaseModel) and isinstance(value, Mapping):
            value = merged_over(own, cast("Mapping[str, object]", value))
        values[name] = value
    return values


class Settings(BaseModel):
    """Frozen; refuses unknown keys and numbers that JSON or msgpack cannot represent exactly.

    Also refuses addresses with credentials.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=no_schema
    )

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        kind: Any = cls.model_fields[info.field_name].annotation if info.field_name else None
        if isinstance(value, bool) and (kind is int or kind is float):
            raise ValueError("must be a number; true and false are none")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _integers_survive_json(cls, value: object) -> object:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError("is too large; at most 2**53 survives JSON")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _no_credentials(cls, value: object) -> object:
        texts = cast("Iterable[object]", value) if isinstance(value, list | tuple) else (value,)
        for text in texts:
            if isinstance(text, str) and has_credentials(text):
                raise ValueError(
                    f"{redacted(text)} has credentials in it, which would be recorded. Leave them "
                    "out and set EACHPROMPT_JUDGE_API_KEY, or AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY"
                )
        return cast("object", value)
