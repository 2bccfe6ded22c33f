"""What tokens count as accepted."""

from data_schemas.ledgers import GroupOutcome, LedgerRow
from tasks.algorithms.token_uses import accepted_tokens
from tests.records import filled


def test_what_is_stale_flat_taught_or_unscored_is_not_accepted():
    def row(outcome, *, stale=0, **changes):
        return filled(
            LedgerRow,
            outcome=outcome,
            prompt_tokens=2,
            solved=0,
            mean_score=0.0,
            advantage_mass=0.0,
            stale_tokens=stale,
            tokens_by_version=((0, 40),),
            **{"generated_tokens": 40, "trained_tokens": 30} | changes,
        )

    fresh = row(GroupOutcome.NON_ZERO_VARIANCE, taught_tokens=10)
    half = row(GroupOutcome.NON_ZERO_VARIANCE, stale=20)
    flat = row(GroupOutcome.ZERO_VARIANCE_TRAINED)
    mute = row(GroupOutcome.UNSCORED, trained_tokens=0)

    assert (50, 35 / 50) == accepted_tokens([fresh, half, flat, mute])
    assert (0, 0.0) == accepted_tokens([flat, mute])
