"""Decide whether new files are worth grading and worth training on, the cheap check first."""

from collections.abc import Sequence

from data_schemas.intake import Decision, Intake, Outcome
from data_schemas.settings import RetrainSettings


def decide_grading(settings: RetrainSettings, intake: Intake) -> Decision:
    """Decide from the counts alone, before any model is loaded."""
    if not intake.files:
        return Decision(
            outcome=Outcome.WAIT, reason=f"nothing new in {intake.inbox} since the watermark"
        )
    found = f"{intake.rows} new rows in {len(intake.files)} files"
    broken = ", ".join(f"{reason} {count}" for reason, count in intake.quarantined.items())
    if intake.valid < settings.min_rows:
        return Decision(
            outcome=Outcome.WAIT,
            reason=f"{found}, {intake.valid} of them valid ({broken or 'none quarantined'}); "
            f"min_rows asks for {settings.min_rows}",
        )
    if intake.fresh == 0:
        return Decision(
            outcome=Outcome.SKIP,
            reason=f"{found}: all {intake.valid} valid ones are duplicates of what the released "
            "model was trained or evaluated on",
        )
    if intake.fresh < settings.min_rows:
        return Decision(
            outcome=Outcome.WAIT,
            reason=f"{found}: {intake.fresh} are not known to the released model yet; "
            f"min_rows asks for {settings.min_rows}",
        )
    return Decision(outcome=Outcome.LEARN, reason=f"{found}, {intake.fresh} of them fresh")


def decide_learning(settings: RetrainSettings, pass_rates: Sequence[float | None]) -> Decision:
    """Decide from what the released model already solves.

    Args:
        settings: `min_unsolved_share`.
        pass_rates: of the released model on the new problems; None where no answer was judged.
    """
    judged = [rate for rate in pass_rates if rate is not None]
    if not judged:
        return Decision(
            outcome=Outcome.WAIT,
            reason=f"no answer to any of {len(pass_rates)} new problems could be judged",
        )
    solved = sum(rate >= 1.0 for rate in judged)
    unsolved = len(judged) - solved
    if unsolved < settings.min_unsolved_share * len(judged) or not unsolved:
        return Decision(
            outcome=Outcome.SKIP,
            reason=f"the released model already solves {solved} of {len(judged)} new problems "
            f"every time; min_unsolved_share asks for {settings.min_unsolved_share:.0%} that it "
            "does not",
        )
    if not any(judged):
        return Decision(
            outcome=Outcome.SKIP,
            reason=f"the released model never solves any of {len(judged)} new problems; without "
            "one right answer there is no reward variance to learn from",
        )
    mixed = sum(0.0 < rate < 1.0 for rate in judged)
    return Decision(
        outcome=Outcome.LEARN,
        reason=f"of {len(judged)} new problems the released model solves {solved} always, "
        f"{mixed} sometimes, {len(judged) - solved - mixed} never",
    )
