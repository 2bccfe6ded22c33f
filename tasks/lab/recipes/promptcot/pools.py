"""As many synthesised as drawn problems: training on either differs in the problems alone."""

from collections.abc import Sequence

from data_schemas.pass_rates import GradedProblem
from tasks.errors import DataError
from tasks.store.files import sha256_bytes

Pool = list[GradedProblem]


def as_many(
    synthesised: Sequence[GradedProblem], drawn: Sequence[GradedProblem]
) -> tuple[Pool, Pool]:
    """Take the same number of both, by the hash of their ids.

    Raises:
        DataError: a side has none.
    """
    count = min(len(synthesised), len(drawn))
    if not count:
        raise DataError(
            f"{len(synthesised)} synthesised and {len(drawn)} drawn problems are within the bounds "
            "of grading: nothing to compare. Write more (recipe.synthesis.problems), or widen "
            "grading.drop_at_or_above"
        )
    return _first(synthesised, count), _first(drawn, count)


def _first(problems: Sequence[GradedProblem], count: int) -> Pool:
    return sorted(problems, key=lambda one: sha256_bytes(one.id.encode()))[:count]
