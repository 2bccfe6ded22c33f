"""Decide whether new files are worth grading and worth training on, the cheap check first."""

from collections.abc import Mapping, Sequence

from data_schemas.intake import Counted, Decision, Intake, Outcome
from data_schemas.settings import RetrainSettings


def decide_reading(intake: Intake, waiting: int) -> Decision:
    """Decide from the files alone, before any row is read.

    Args:
        intake: of the files.
        waiting: files of refused models that would be used again with a new one.
    """
    left = f"; left for a later run: {_listed(intake.left)}" if intake.left else ""
    if intake.files:
        again = sum(file.refusals > 0 for file in intake.files)
        with_ = f", {again} of them used again after a refused model" if again else ""
        return Decision(outcome=Outcome.LEARN, reason=f"{len(intake.files)} files{with_}{left}")
    kept = (
        f"; {waiting} files of refused models are kept and used with the next new one"
        if waiting
        else ""
    )
    return Decision(outcome=Outcome.WAIT, reason=f"nothing new in {intake.inbox}{kept}{left}")


def decide_grading(settings: RetrainSettings, files: str, counted: Counted, drift: str) -> Decision:
    """Decide from the counts of curation, before any model is loaded.

    Args:
        settings: `min_rows`.
        files: reason of the decision to read them, which names them.
        counted: of curation.
        drift: how the problems differ from the known ones, in words.
    """
    found = f"{counted.rows} rows in {files}"
    if counted.refused:
        found += f"; not usable: {_listed(counted.refused)}"
    if counted.problems < settings.min_rows:
        outcome, reason = Outcome.WAIT, f"{counted.problems} problems are left"
    elif counted.fresh == 0:
        reason = (
            f"all {counted.problems} problems are duplicates of what the released model was "
            "trained or evaluated on"
        )
        outcome = Outcome.SKIP
    elif counted.fresh < settings.min_rows:
        outcome = Outcome.WAIT
        reason = f"{counted.fresh} problems are not known to the released model yet"
    else:
        outcome, reason = Outcome.LEARN, f"{counted.fresh} fresh problems"
    asked = f"; min_rows asks for {settings.min_rows}" if outcome is Outcome.WAIT else ""
    return Decision(outcome=outcome, reason=f"{found}; {reason}{asked}. Drift: {drift}")


def decide_learning(
    settings: RetrainSettings, rows: str, pass_rates: Sequence[float | None]
) -> Decision:
    """Decide from what the released model already solves.

    Args:
        settings: `min_unsolved_share`.
        rows: reason of the decision to grade them, which comes first in the new one.
        pass_rates: of the released model on the new problems; None where no answer was scored.
    """
    outcome, reason = _learning(settings, pass_rates)
    return Decision(outcome=outcome, reason=f"{rows}. Graded: {reason}")


def _learning(settings: RetrainSettings, pass_rates: Sequence[float | None]) -> tuple[Outcome, str]:
    scored = [rate for rate in pass_rates if rate is not None]
    if not scored:
        return (
            Outcome.WAIT,
            f"no answer to any of {len(pass_rates)} new problems could be scored",
        )
    solved = sum(rate >= 1.0 for rate in scored)
    unsolved = len(scored) - solved
    if unsolved < settings.min_unsolved_share * len(scored) or not unsolved:
        return (
            Outcome.SKIP,
            f"the released model already solves {solved} of {len(scored)} new problems every "
            f"time; min_unsolved_share asks for {settings.min_unsolved_share:.0%} that it does not",
        )
    if not any(scored):
        return (
            Outcome.SKIP,
            f"the released model never solves any of {len(scored)} new problems; without one "
            "right answer there is no reward variance to learn from",
        )
    mixed = sum(0.0 < rate < 1.0 for rate in scored)
    return (
        Outcome.LEARN,
        f"of {len(scored)} new problems the released model solves {solved} always, {mixed} "
        f"sometimes, {len(scored) - solved - mixed} never",
    )


def _listed(reasons: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(reasons.items()))
