"""How often the verifiers err: what the examiner measured, beside the digest of its evidence.

`python -m tests.examiner.error_rates` writes the file from that evidence.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from data_schemas.reports import VerifierExamination, VerifierRates

FILE = Path(__file__).with_name("error_rates.json")
NOT_MEASURED = "not measured"


@cache
def examination() -> VerifierExamination:
    """Read all that was measured."""
    return VerifierExamination.model_validate_json(FILE.read_bytes())


def rates_of(verifiers: Iterable[str]) -> VerifierExamination:
    """Return the rates of some verifiers, in order of names; those that nobody measured are None.

    Args:
        verifiers: by name; of a reference to code the digest does not matter.
    """
    measurements = {one.verifier: one for one in examination().rates}
    names = sorted({name.partition("@")[0] for name in verifiers})
    rates = tuple(measurements.get(name, VerifierRates(verifier=name)) for name in names)
    return examination().model_copy(update={"rates": rates})
