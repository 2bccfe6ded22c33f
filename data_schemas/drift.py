"""How the problems of new files differ from those that a released model knows."""

from pydantic import Field

from data_schemas.frozen_model import FrozenModel

MODERATE, LARGE = 0.1, 0.25
"""Population stability index from which a distribution has changed moderately, and clearly
(Siddiqi 2006)."""
FOREIGN = 0.9
"""Share of the new problems with an unknown value from which a field has next to nothing in common
with the known ones. PSI cannot say so: it grows with the number of rows."""


class ValueShare(FrozenModel):
    """One value of a field, or one bin of a number."""

    value: str
    known: float
    new: float


class FieldDrift(FrozenModel):
    """One field of the problems."""

    field: str
    psi: float
    chance: float = Field(description="PSI that as many rows without drift exceed 1 time in 20")
    unknown: float = Field(
        description="share of the new problems whose value is unknown or out of range, less what "
        "is expected of rows without drift"
    )
    new: tuple[str, ...] = Field(description="values no known problem has, most frequent first")
    vanished: tuple[str, ...]
    shares: tuple[ValueShare, ...] = Field(
        default=(), description="the most frequent values, or bins"
    )

    @property
    def degree(self) -> str:
        """'stable', 'moderate' or 'large'."""
        if self.psi < max(MODERATE, self.chance):
            return "stable"
        return "large" if self.psi >= LARGE else "moderate"

    @property
    def is_foreign(self) -> bool:
        """True if next to no new problem has a known value."""
        return self.unknown >= FOREIGN


class Drift(FrozenModel):
    """New problems against known ones."""

    known: int
    new: int
    fields: tuple[FieldDrift, ...]
    unknown_words: float = Field(description="share of the new words that no known prompt contains")
    examples: tuple[str, ...] = Field(default=(), description="new prompts, most unknown words")

    def explain(self) -> str:
        """Describe it in two sentences, without the last full stop."""
        if not self.known or not self.new:
            return f"not measured: {self.known} known and {self.new} new problems"
        drifted = [field for field in self.fields if field.degree != "stable"]
        fields = "; ".join(map(_explain, drifted)) or "no field has drifted"
        return (
            f"{self.new} problems against {self.known} known ones: {fields}. "
            f"{self.unknown_words:.0%} of their words are unknown"
        )


class Conflict(FrozenModel):
    """A question to which a held file gives another answer than the released model learned."""

    file: str
    prompt: str
    known: tuple[str, ...] = Field(description="answers in the rows of the released model")
    new: str


class SliceReport(FrozenModel):
    """One domain or language over a phase of RL: means over its steps, by measure."""

    kind: str
    value: str
    steps: int = Field(ge=1)
    means: dict[str, float] = Field(
        description="k3, reward, length_tokens, truncated_share, abstained_share"
    )


class NightDetails(FrozenModel):
    """What the page of one retraining shows besides its decision."""

    drift: Drift
    refused: dict[str, str] = Field(description="reason -> an item left out, in the filter's words")
    pass_rates: dict[str, float] = Field(
        default_factory=dict, description="of the released model: 'new' and 'replayed' problems"
    )
    conflicts: tuple[Conflict, ...] = Field(default=(), description="the first of held files")
    slices: tuple[SliceReport, ...] = Field(
        default=(), description="of its phase of RL; () = no phase"
    )


def _explain(drift: FieldDrift) -> str:
    parts = [f"{drift.field} {drift.degree} (PSI {drift.psi:.2f}"]
    for word, values in (("new", drift.new), ("vanished", drift.vanished)):
        if values:
            examples = ", ".join(values[:3])
            parts.append(f"{word}: {examples}{' ...' if len(values) > 3 else ''}")
    return ", ".join(parts) + ")"
