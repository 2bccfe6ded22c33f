"""Base class of every group of settings."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

LARGEST = 2**53
"""JSON readers may round larger integers."""
LARGEST_SEED = 2**32 - 1
"""Largest seed accepted by numpy, torch and vLLM."""
Seed = Annotated[
    int, Field(ge=0, le=LARGEST_SEED, description="for everything random in the stage")
]

Whole = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(ge=1, le=LARGEST)]


def no_schema(schema: dict[str, Any]) -> None:
    """Empty the schema: Flyte would print it in `--help`, where it fills ten screens."""
    schema.clear()


class Settings(BaseModel):
    """Frozen; refuses unknown keys and numbers that JSON or msgpack cannot represent exactly."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=no_schema
    )

    @field_validator("*", mode="after")
    @classmethod
    def _integers_survive_json(cls, value: object) -> object:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError("is too large; at most 2**53 survives JSON")
        return value
