"""What every group of settings has in common."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

LARGEST = 2**53
"""Beyond it a JSON reader may round an integer."""
LARGEST_SEED = 2**32 - 1
"""What numpy, torch and vLLM all take."""
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED, description="of everything the stage draws")]


def no_schema(schema: dict[str, Any]) -> None:
    """Leave the schema empty: Flyte prints it as help, where it fills ten screens."""
    schema.clear()


class Settings(BaseModel):
    """Frozen, unknown keys refused, and only numbers that survive JSON and msgpack."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=no_schema
    )

    @field_validator("*", mode="after")
    @classmethod
    def _integers_survive_json(cls, value: object) -> object:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError("is too large; at most 2**53 survives JSON")
        return value
