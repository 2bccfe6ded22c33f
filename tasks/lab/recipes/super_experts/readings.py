"""What a profile of a model's experts found."""

from pydantic import Field

from data_schemas.frozen_model import FrozenModel

PROFILE_FILE = "profile.json"
INPUTS_FILE = "inputs.json"
"""Files of a profile: ExpertProfile; settings in which the named experts are protected."""


class ExpertReading(FrozenModel):
    """The experts that one reading of the rule names."""

    reading: str = Field(description="'eq_6', 'algorithm' or 'code'")
    cut: float = Field(description="a tenth of the largest peak that it compares with")
    percentile: float = Field(description="99.5th percentile of the peaks it compares with")
    named: tuple[tuple[int, int], ...] = Field(description="layer and expert")


class ExpertProfile(FrozenModel):
    """Peaks of all experts on calibration text, and which experts are Super Experts."""

    named: tuple[tuple[int, int], ...] = Field(
        description="by equation 6; empty = the model has none"
    )
    reason: str = Field(description="why these, or why none")
    readings: tuple[ExpertReading, ...]
    layers: tuple[int, ...] = Field(description="number of each MoE layer among all layers")
    peaks: tuple[tuple[float, ...], ...] = Field(
        description="largest |output| of each expert's down projection, by layer; 0 = not chosen"
    )
    tokens: tuple[tuple[int, ...], ...] = Field(description="that chose each expert, by layer")
    largest_hidden: tuple[float, ...] = Field(description="largest |h| after each layer")
    median_hidden: tuple[float, ...] = Field(description="median |h| after each layer")
    massive_layers: tuple[int, ...] = Field(description="layers with massive activations")
    calibration: str = Field(description="sha256 of the token rows, int32")
    calibration_tokens: int
