"""What generated tokens were used for, from the rows of a ledger.

Every token has one use. The waste of a phase is all that is neither trained with contrast nor by
RL-ZVP.
"""

from collections.abc import Sequence

from data_schemas.ledger import GroupOutcome, LedgerRow, TokenUse

_USES = {
    GroupOutcome.NON_ZERO_VARIANCE: (TokenUse.TRAINED, TokenUse.NO_ADVANTAGE),
    GroupOutcome.ZERO_VARIANCE_TRAINED: (TokenUse.TRAINED_ZVP, TokenUse.NO_ADVANTAGE),
} | {
    outcome: (use, use)
    for outcome, use in (
        (GroupOutcome.ZERO_VARIANCE_PARTIAL, TokenUse.ZERO_VARIANCE),
        (GroupOutcome.ZERO_VARIANCE_JUDGED, TokenUse.ZERO_VARIANCE),
        (GroupOutcome.ZERO_VARIANCE_IDLE, TokenUse.ZERO_VARIANCE),
        (GroupOutcome.SURPLUS, TokenUse.SURPLUS),
        (GroupOutcome.UNSCORED, TokenUse.UNSCORED),
        (GroupOutcome.IN_FLIGHT, TokenUse.IN_FLIGHT),
        (GroupOutcome.SKIPPED_ZERO_VARIANCE, TokenUse.DRAFT),  # without any token
        (GroupOutcome.SKIPPED_BAND, TokenUse.DRAFT),
    )
}
"""Use of the tokens with an advantage, and of the others."""


def token_uses(rows: Sequence[LedgerRow]) -> dict[TokenUse, int]:
    """Count the generated tokens of some rows by use; the counts add up to all of them.

    A response that was generated over several steps counts in each step with the tokens of that
    step only; reused tokens are not generated and have no use here.
    """
    uses = dict.fromkeys(TokenUse, 0)
    for row in rows:
        new = row.generated_tokens - row.draft_tokens
        trained = min(new, row.trained_tokens)
        used, rest = _USES[row.outcome]
        uses[TokenUse.DRAFT] += row.draft_tokens
        uses[used] += trained
        uses[rest] += new - trained
    return uses
