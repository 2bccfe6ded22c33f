"""The base of what is written once and read by others: records of stages, rows, reports."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Cannot be changed after it is made; a field that it does not have is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
