"""Solve rates of models, and the bands of them that curation keeps.

`evaluate` and `verify_answers` write a line per problem and model. The file is a source of curation
with the adapter `solve_rates`; a source `bands` says which rates to keep. The contents of both are
thus part of the chain.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from data_schemas.faults import did_you_mean
from data_schemas.pass_rates import PassRateBand, SolveRate
from tasks.errors import DataError
from tasks.formats.line_files import read_lines
from tasks.store.files import canonical_json, write_bytes

ADAPTER, BANDS = "solve_rates", "bands"
"""Names of such sources in the settings."""
FILE = "solve_rates.jsonl"

Answered = tuple[str, str, str]
"""Id, raw row and gold answer of a problem, as models answered it."""


@dataclass(slots=True)
class ProblemPassRates:
    """The pass rates of one problem."""

    source: str
    rates: dict[str, float | None] = field(default_factory=dict)
    """Pass rate by model; None if no response has a verdict."""


Rates = Mapping[Answered, ProblemPassRates]
Bands = Mapping[str, Mapping[str, PassRateBand]]
"""By source and model."""


def write_rates(path: Path, rates: Iterable[SolveRate]) -> None:
    """Write the file, a problem and model per line."""
    lines = (canonical_json(one.model_dump(mode="json")) + b"\n" for one in rates)
    write_bytes(path, b"".join(lines))


def read_rates(paths: Iterable[Path]) -> dict[Answered, ProblemPassRates]:
    """Read solve rates.

    A problem whose row or gold answer changed between two measurements has an entry for each.

    Raises:
        DataError: a line cannot be read, or repeats a problem and model.
    """
    rates: dict[Answered, ProblemPassRates] = {}
    for path in paths:
        for where, one in read_lines(path, SolveRate):
            key = (one.problem, one.source_row, one.gold)
            measured = rates.setdefault(key, ProblemPassRates(one.source))
            if one.model in measured.rates:
                raise DataError(
                    f"{where}: {one.problem} has a solve rate of {one.model} already. Remove one "
                    "of the lines."
                )
            measured.rates[one.model] = one.pass_rate
    return rates


def read_bands(paths: Iterable[Path]) -> dict[str, dict[str, PassRateBand]]:
    """Read bands, by source and model.

    Raises:
        DataError: a line cannot be read, or repeats a source and model.
    """
    bands: dict[str, dict[str, PassRateBand]] = defaultdict(dict)
    for path in paths:
        for where, one in read_lines(path, PassRateBand):
            if one.model in bands[one.source]:
                raise DataError(
                    f"{where}: {one.source} has a band of {one.model} already. Remove one of the "
                    "lines."
                )
            bands[one.source][one.model] = one
    return dict(bands)


def check_bands(bands: Bands, models: Mapping[str, Collection[str]]) -> None:
    """Check that every band is of a source that is trained on and of a model with rates of it.

    Args:
        bands: by source and model.
        models: those with pass rates, by source that is trained on.

    Raises:
        DataError: names the first band that is not.
    """
    for source, of_source in bands.items():
        if source not in models:
            raise DataError(
                f"a band names the source {source!r}. {_likely(source, models)}Sources that are "
                f"trained on: {', '.join(sorted(models)) or 'none'}."
            )
        names = models[source]
        for model in of_source:
            if model not in names:
                raise DataError(
                    f"a band of {source} names the model {model!r}. {_likely(model, names)}Models "
                    f"with pass rates of {source}: {', '.join(sorted(names)) or 'none'}. Add a "
                    f"source {ADAPTER}=FILE that has them."
                )


def _likely(name: str, names: Iterable[str]) -> str:
    likely = did_you_mean(name, sorted(names))
    return f"{likely[0].upper()}{likely[1:]} " if likely else ""
