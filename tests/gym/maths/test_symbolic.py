"""What math-verify is asked, and that it can't hold anybody up."""

import pytest

from tasks.gym.maths.symbolic import SymbolicResult, compare
from tests.timing import timed


@pytest.mark.parametrize(
    ("gold", "candidate", "outcome"),
    [
        ("\\sum_{k=0}^{3} k", "\\sum_{k=1}^{3} k", SymbolicResult.SAME),
        ("\\sum_{k=0}^{3} k", "\\sum_{k=1}^{2} k", SymbolicResult.DIFFERENT),
        (
            "1\\leq|z|\\leq \\frac{3}{2}",
            "[-\\frac{3}{2}, -1] \\cup [1, \\frac{3}{2}]",
            SymbolicResult.SAME,
        ),
        ("8", "\\neq 8", SymbolicResult.UNREAD),
        ("8", "8 \\ldots", SymbolicResult.UNREAD),
        ("8", "\\foo{8}", SymbolicResult.UNREAD),
        ("\\foo{8}", "8", SymbolicResult.GOLD_UNREAD),
    ],
)
def test_latex_is_read_as_a_whole_or_not_at_all(gold, candidate, outcome) -> None:
    assert outcome is compare(gold, candidate)[0]


@pytest.mark.parametrize(
    "tower", ["9^{9^{9^{9}}}", "\\int 9^{99999} dx", "\\sum 99999!", "9" * 100, "\\sqrt{" * 200]
)
def test_what_would_fill_a_memory_is_not_read(tower: str) -> None:
    compare("x", "x")  # imports sympy
    seconds, (outcome, took_s) = timed(lambda: compare("x^{2}", tower), 1.0)

    assert SymbolicResult.UNREAD is outcome
    assert took_s <= seconds < 1.0
