"""Give problems of maths the MSC 2020 class of the subject that their source names."""

from collections.abc import Mapping

from data_schemas.subjects import MSC, SUBJECT, msc_of


def with_class(facets: Mapping[str, str]) -> dict[str, str]:
    """Return the facets of a problem of maths with its class beside its subject.

    A class that a source gives itself stays. A subject without a class gets none: nothing is
    guessed from the text of a problem.
    """
    result = msc_of(facets.get(SUBJECT, ""))
    return {**facets, MSC: result} if result and not facets.get(MSC) else dict(facets)
