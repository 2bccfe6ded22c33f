"""What generated tokens were used for, from the rows of a ledger.

Every token has one use. It is trained if it has weight in the policy's loss: plan weight x
|advantage x correction| > 0. The waste of a run is all that is neither trained with contrast nor by
RL-ZVP nor taught, and the tokens of grading are part of the account.
"""

from collections.abc import Sequence

from data_schemas.ledgers import GroupOutcome, LedgerRow, TokenUse
from data_schemas.reports import ACCEPTED, FRESHNESS, StepReport, StepTiming

_USES = {
    GroupOutcome.NON_ZERO_VARIANCE: (TokenUse.TRAINED, TokenUse.NO_ADVANTAGE),
    GroupOutcome.ZERO_VARIANCE_TRAINED: (TokenUse.TRAINED_ZVP, TokenUse.NO_ADVANTAGE),
} | {
    outcome: (use, use)
    for outcome, use in (
        (GroupOutcome.ZERO_VARIANCE_PARTIAL, TokenUse.ZERO_VARIANCE),
        (GroupOutcome.ZERO_VARIANCE_NOISE, TokenUse.ZERO_VARIANCE),
        (GroupOutcome.ZERO_VARIANCE_JUDGED, TokenUse.ZERO_VARIANCE),
        (GroupOutcome.ZERO_VARIANCE_IDLE, TokenUse.ZERO_VARIANCE),
        (GroupOutcome.SURPLUS, TokenUse.SURPLUS),
        (GroupOutcome.UNSCORED, TokenUse.UNSCORED),
        (GroupOutcome.IN_FLIGHT, TokenUse.IN_FLIGHT),
        (GroupOutcome.SKIPPED_ZERO_VARIANCE, TokenUse.DRAFT),  # without any token
        (GroupOutcome.SKIPPED_BAND, TokenUse.DRAFT),
        (GroupOutcome.SKIPPED_DOMAIN, TokenUse.DRAFT),
    )
}
"""Use of the tokens with an advantage, and of the others."""


def token_uses(rows: Sequence[LedgerRow], grading: int = 0) -> dict[TokenUse, int]:
    """Count the generated tokens of some rows and of grading by use; the counts add up to all.

    A response that was generated over several steps counts in each step with the tokens of that
    step only.
    """
    uses = dict.fromkeys(TokenUse, 0) | {TokenUse.GRADING: grading}
    for row in rows:
        remainder = row.generated_tokens - row.draft_tokens
        used, rest = _USES[row.outcome]
        uses[TokenUse.DRAFT] += row.draft_tokens
        for use, tokens in (
            (TokenUse.TAUGHT, row.taught_tokens),
            (used, row.trained_tokens - row.taught_tokens),
            (TokenUse.REGULARISED, row.regularised_tokens),
            (TokenUse.CUT, row.cut_tokens),
            (TokenUse.MASKED, row.masked_tokens),
            (TokenUse.DROPPED, row.dropped_tokens),
            (TokenUse.SINGLETON, row.singleton_tokens),
        ):
            new = min(remainder, tokens)
            uses[use] += new
            remainder -= new
        uses[rest] += remainder
    return uses


def accepted_tokens(rows: Sequence[LedgerRow]) -> tuple[int, float]:
    """Count the tokens that some rows generated and trained with contrast, and their freshness.

    What had no contrast, was masked, cut or not scored, or was taught by another model is not
    accepted. Freshness is the share of accepted tokens that the policy sampled which the step
    began with; of a group, it is that of all its tokens.

    Returns:
        Tokens, and the share of them from 0 to 1; 0 without a token.
    """
    accepted, fresh = 0, 0.0
    for row in rows:
        tokens = token_uses([row])[TokenUse.TRAINED]
        sampled = sum(count for _, count in row.tokens_by_version)
        accepted += tokens
        fresh += tokens * (1.0 - row.stale_tokens / sampled if sampled else 1.0)
    return accepted, fresh / accepted if accepted else 0.0


def goodput(steps: Sequence[tuple[StepReport, StepTiming]]) -> float | None:
    """Score some steps: accepted tokens per second times their freshness.

    None where no step says how many tokens it accepted, or no time passed.
    """
    counted = [(one.metrics, timing) for one, timing in steps if ACCEPTED in one.metrics]
    seconds = sum(sum(timing.parts.values()) for _, timing in counted)
    fresh = sum(metrics[ACCEPTED] * metrics[FRESHNESS] for metrics, _ in counted)
    return fresh / seconds if seconds > 0.0 else None
