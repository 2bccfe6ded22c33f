"""Problems and samples written down by hand: the same as for tests of evaluation."""

from tests.evaluation.conftest import make_problem, make_samples

__all__ = ["make_problem", "make_samples"]
