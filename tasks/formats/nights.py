"""What the page of a night shows, kept beside the reports of the store until it is written."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.drift import NightDetails, SliceReport
from data_schemas.reports import StepReport
from data_schemas.rows import FACETS, QUARANTINE, Facet, QuarantinedItem
from tasks.formats.slices import measures_by_slice
from tasks.store.files import canonical_json
from tasks.store.interface import store_at

FILE = "night.json"


def save(store: str, execution: str, night: NightDetails) -> None:
    """Keep what is known so far; a later call replaces it."""
    store_at(f"{store}/reports").write_bytes(canonical_json(night), f"{execution}.{FILE}")


def load_night(store: str, execution: str) -> NightDetails | None:
    """Read what is known of an execution; None if there is none or it read no rows."""
    place, name = store_at(f"{store}/reports"), f"{execution}.{FILE}"
    return (
        NightDetails.model_validate_json(place.read_bytes(name))
        if name in place.list_files()
        else None
    )


def add_pass_rates(store: str, execution: str, rates: Mapping[str, Sequence[float | None]]) -> None:
    """Add the mean pass rate of each kind of problems that has a verdict."""
    night = load_night(store, execution)
    assert night is not None, execution  # rows are examined before they are graded
    decided = {name: [rate for rate in of if rate is not None] for name, of in rates.items()}
    means = {name: sum(of) / len(of) for name, of in decided.items() if of}
    save(store, execution, night.model_copy(update={"pass_rates": means}))


def slices_of_steps(steps: Sequence[StepReport]) -> tuple[SliceReport, ...]:
    """Average what the steps of a phase report by slice, over the steps that have it."""
    return tuple(
        SliceReport(
            kind=kind,
            value=of,
            steps=max(map(len, measures.values())),
            means={name: sum(seen) / len(seen) for name, seen in sorted(measures.items())},
        )
        for (kind, of), measures in sorted(measures_by_slice(steps).items())
    )


def add_slices(store: str, execution: str, steps: Sequence[StepReport]) -> None:
    """Add what the phase of RL of a night reports by domain and language."""
    night = load_night(store, execution)
    if night is not None:
        save(store, execution, night.model_copy(update={"slices": slices_of_steps(steps)}))


def facets(folders: Sequence[Path]) -> list[Facet]:
    """Read what curated sets say of their problems besides."""
    paths = [folder / FACETS for folder in folders]
    return [facet for path in paths if path.exists() for facet in read_table(path, Facet)]


def refusals(curated: Path) -> dict[str, str]:
    """Give one example of every reason for which rows were left out."""
    examples: dict[str, str] = {}
    for row in read_table(curated / QUARANTINE, QuarantinedItem):
        examples.setdefault(row.reason, f"{row.key}: {row.detail}")
    return examples
