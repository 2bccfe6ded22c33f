"""Variants of the study: the scaffold as published, and one thing of it changed at a time.

The variant `none` trains the same phase without a scaffold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from data_schemas.rl_settings import RLSettings
from data_schemas.settings import PipelineSettings
from tasks.errors import SettingsError
from tasks.lab.recipes.rusca.settings import Curve, Ratio, ScaffoldSettings, WithinGroup

PUBLISHED, NONE = "ruscarl", "none"


@dataclass(frozen=True, slots=True)
class ScaffoldVariant:
    """One line of the table."""

    name: str
    meaning: str
    changes: Mapping[str, object] = field(default_factory=dict)
    """Changes of the scaffold's settings."""
    scaffolded: bool = True


VARIANTS = (
    ScaffoldVariant(PUBLISHED, "the scaffold as published"),
    ScaffoldVariant(NONE, "no scaffold", scaffolded=False),
    ScaffoldVariant("importance", "the ratio is bare over scaffolded", {"ratio": Ratio.IMPORTANCE}),
    ScaffoldVariant("constant", "the scaffold never decays", {"curve": Curve.CONSTANT}),
)
MORE = (
    ScaffoldVariant(
        "scaffolded", "both sides of the ratio scaffolded", {"ratio": Ratio.SCAFFOLDED}
    ),
    ScaffoldVariant("linear", "linear decay", {"curve": Curve.POWER, "steepness": 1.0}),
    ScaffoldVariant(
        "half", "half of a group sees everything", {"within_group": WithinGroup.FIRST_HALF}
    ),
    ScaffoldVariant("every", "every sample sees everything", {"within_group": WithinGroup.EVERY}),
)
"""Comparisons of the paper that no claim here rests on."""


def select_variants(names: str) -> tuple[ScaffoldVariant, ...]:
    """Select variants by name; VARIANTS for ''. The published scaffold is always the first.

    Raises:
        SettingsError: there is no such variant.
    """
    by_name = {variant.name: variant for variant in (*VARIANTS, *MORE)}
    selection = {name.strip() for name in names.split(",") if name.strip()}
    unknown = sorted(selection - by_name.keys())
    if unknown:
        raise SettingsError(f"there is no variant {unknown[0]!r}; choose from {', '.join(by_name)}")
    if not selection:
        return VARIANTS
    return tuple(variant for name, variant in by_name.items() if name in {*selection, PUBLISHED})


def phase_of(settings: PipelineSettings, seed: int) -> RLSettings:
    """Return the settings that all variants of a seed share: phase one's."""
    return settings.rl_one.model_copy(update={"seed": seed})


def scaffold_for(scaffold: ScaffoldSettings, name: str) -> ScaffoldSettings:
    """Return the scaffold of a variant."""
    (variant,) = (item for item in select_variants(name) if item.name == name)
    return ScaffoldSettings.model_validate(scaffold.model_dump() | dict(variant.changes))
