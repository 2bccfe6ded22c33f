"""Add to problems how often models solve them, and keep those within the bands of their source.

A problem without a pass rate is never one of pass rate 0: where a band asks for the rate, it is
dropped with a reason of its own. Demonstrations stay, as they do when problems are graded.
Source: Ring-lite (arXiv 2506.14731) annotates problems with the solve rates of several models
and drops those that all or none of them solve. Differs: the bands are the user's.
"""

from collections.abc import Iterable, Mapping

from data_schemas.pass_rates import PASS_RATE, PassRateBand
from tasks.formats.solve_rates import Answered, Rates

PASS_RATES = "selection"
NO_RATE, OUTSIDE = "no_pass_rate", "outside_band"


def is_rate(text: str) -> bool:
    """Return whether a text is a number from 0 to 1."""
    try:
        return 0.0 <= float(text) <= 1.0  # not a number is neither
    except ValueError:
        return False


def with_rates(facets: Mapping[str, str], problem: Answered, rates: Rates) -> dict[str, str]:
    """Return the facets of a problem with the pass rates of models.

    Args:
        facets: of the source, which may have pass rates as well; measured ones take precedence.
        problem: as it is in the set. Rates of another row or gold answer are not its rates.
        rates: of all problems.
    """
    measured = rates[problem].rates if problem in rates else {}
    pass_rates = {
        f"{PASS_RATE}{model}": str(rate) for model, rate in measured.items() if rate is not None
    }
    return {**facets, **pass_rates}


def fault(facets: Mapping[str, str], bands: Iterable[PassRateBand]) -> tuple[str, str]:
    """Return the reason and its detail if a problem lies outside of a band; ('', '') if in all."""
    for band in bands:
        rate = facets.get(f"{PASS_RATE}{band.model}")
        if not rate:
            return NO_RATE, f"no response of {band.model} to this row and gold answer has a verdict"
        if not band.lowest <= float(rate) <= band.highest:
            return OUTSIDE, f"pass rate {float(rate):.3g} of {band.model}, band {band.limits}"
    return "", ""
