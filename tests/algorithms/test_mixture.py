import pytest

from data_schemas.rows import Domain
from tasks.algorithms.mixture import robust_shares

DOMAINS = (Domain.MATHS, Domain.CODE, Domain.CHOICE)


def test_the_tilted_shares_are_those_worked_by_hand():
    """exp(5 x .06, .03, .01) are 1.349859, 1.161834 and 1.051271: 0.9 of each over their sum."""
    found = robust_shares(
        dict.fromkeys(DOMAINS, 2.0), dict(zip(DOMAINS, (0.06, 0.03, 0.01), strict=True)), 5.0
    )

    assert [0.374306, 0.326811, 0.298883] == pytest.approx([*found.values()], abs=2e-6)


def test_equal_losses_and_no_tilt_leave_the_shares_as_asked():
    asked = dict(zip(DOMAINS, (5.0, 3.0, 2.0), strict=True))
    for losses, eta in (([0.7] * 3, 5.0), ([0.9, 0.1, 0.5], 0.0)):
        found = robust_shares(asked, dict(zip(DOMAINS, losses, strict=True)), eta)
        assert [0.5, 0.3, 0.2] == pytest.approx([*found.values()])
