"""Decide whether new files are worth grading and worth training on, the cheap check first.

Every decision is a pure function of counts, and its reason contains that of the one before.
"""

from collections.abc import Mapping, Sequence

from data_schemas.drift import Drift
from data_schemas.intake import CurationCounts, Intake, IntakeDecision, IntakeOutcome, Teaching
from data_schemas.rows import MERGED, MixReport
from data_schemas.settings import RetrainSettings
from tasks.formats.readiness import MIN_DEMONSTRATIONS


def files_of(count: int) -> str:
    """Write a number of files."""
    return "1 file" if count == 1 else f"{count} files"


def decide_reading(intake: Intake, waiting: int) -> IntakeDecision:
    """Decide from the files alone, before any row is read.

    Args:
        intake: of the files.
        waiting: files of refused models that would be used again with a new one.
    """
    postponed_note = f"; left for a later run: {_listed(intake.left)}" if intake.left else ""
    if intake.files:
        again = sum(file.refusals > 0 for file in intake.files)
        with_ = f", {again} of them used again after a refused model" if again else ""
        return IntakeDecision(
            outcome=IntakeOutcome.LEARN,
            reason=f"{files_of(len(intake.files))}{with_}{postponed_note}",
        )
    waiting_note = (
        f"; {files_of(waiting)} of refused models are kept and used with the next new one"
        if waiting
        else ""
    )
    return IntakeDecision(
        outcome=IntakeOutcome.WAIT,
        reason=f"nothing new in {intake.inbox}{waiting_note}{postponed_note}",
    )


def decide_grading(
    settings: RetrainSettings,
    files: str,
    counts: CurationCounts,
    drift: Drift,
    suspects: Mapping[str, str] | None = None,
) -> IntakeDecision:
    """Decide from the counts of curation, before any model is loaded.

    Args:
        settings: `min_rows`.
        files: reason of the decision to read them, which names them.
        counts: of curation.
        drift: of the problems from the known ones, those of strangers included.
        suspects: key of a file -> why people must look at it.
    """
    summary = f"{counts.rows} rows in {files}"
    if counts.refused:
        summary += f"; not usable: {_listed(counts.refused)}"
    suspect_keys = tuple(sorted(suspects or ()))
    if counts.problems < settings.min_rows:
        outcome, reason = IntakeOutcome.WAIT, f"{counts.problems} problems are left"
    elif counts.fresh == 0:
        reason = (
            f"all {counts.problems} problems are duplicates of what the released model was "
            "trained or evaluated on"
        )
        outcome = IntakeOutcome.SKIP
    elif counts.fresh < settings.min_rows:
        outcome = IntakeOutcome.WAIT
        reason = f"{counts.fresh} problems are not known to the released model yet"
    else:
        outcome, reason = IntakeOutcome.LEARN, f"{counts.fresh} fresh problems"
    minimum = f"; min_rows asks for {settings.min_rows}" if outcome is IntakeOutcome.WAIT else ""
    reason += minimum
    if suspects:
        suspect_list = "; ".join(_grouped(suspects))
        rest = (
            "the night goes on without them" if outcome is IntakeOutcome.LEARN else "of the others"
        )
        reason = f"needs people: {suspect_list}. These files are set aside; {rest}: {reason}"
        outcome = IntakeOutcome.PEOPLE if outcome is IntakeOutcome.WAIT else outcome
    return IntakeDecision(
        outcome=outcome, reason=f"{summary}; {reason}. Drift: {drift.explain()}", held=suspect_keys
    )


def decide_learning(
    settings: RetrainSettings,
    rows: IntakeDecision,
    pass_rates: Sequence[float | None],
    replayed: int,
    mixed: MixReport,
    teaching_mode: Teaching,
) -> tuple[IntakeDecision, Teaching]:
    """Decide from what the released model already solves, and from the demonstrations.

    Args:
        settings: `min_unsolved_share`, `min_rows` and `sft.epochs`.
        rows: the decision to grade them, whose reason comes first in the new one.
        pass_rates: of the released model on the new problems; None where no answer was scored.
        replayed: old problems that were graded beside them.
        mixed: what was graded from.
        teaching_mode: use of demonstrations, if there are enough.

    Returns:
        The decision, and how the model is fine-tuned before RL.
    """
    teaching, why = choose_teaching(settings, mixed, teaching_mode)
    outcome, graded = _learning(settings, pass_rates, is_taught=teaching is not Teaching.OFF)
    parts = [f"{rows.reason}. Graded: {graded}"]
    if mixed.refused:
        parts.append(f"Left out: {_listed(mixed.refused)}")
    if outcome is not IntakeOutcome.LEARN:
        return IntakeDecision(
            outcome=outcome, reason=". ".join(parts), held=rows.held
        ), Teaching.OFF
    parts.append(why)
    parts.append(
        f"RL may draw from {len(pass_rates)} new and {replayed} old problems, of "
        f"{mixed.fresh} and {mixed.replayed} that were offered"
    )
    if mixed.added:
        parts.append(f"{mixed.added} new ones are held out as {mixed.slice}")
    return IntakeDecision(outcome=outcome, reason=". ".join(parts), held=rows.held), teaching


def choose_teaching(
    settings: RetrainSettings, mixed: MixReport, mode: Teaching
) -> tuple[Teaching, str]:
    """Decide whether the released model is fine-tuned before RL, and say why."""
    summary = f"{mixed.demonstrations} new demonstrations"
    if mode is Teaching.OFF or not settings.sft.epochs:
        why = "demonstrations is off" if mode is Teaching.OFF else "sft.epochs is 0"
        return Teaching.OFF, f"RL only: {summary}, and {why}"
    if mixed.demonstrations < settings.min_rows:
        return Teaching.OFF, f"RL only: {summary}; min_rows asks for {settings.min_rows}"
    if mode is Teaching.MERGE and any(
        mixed.parents.get(parent.value, 0) < MIN_DEMONSTRATIONS for parent in MERGED
    ):
        return Teaching.OFF, f"RL only: {summary}, but a merge needs some of both parents"
    how = "two merged models" if mode is Teaching.MERGE else "one model"
    return (
        mode,
        f"SFT + RL: {summary}; with {mixed.practised} old ones they fine-tune {how} first",
    )


def _learning(
    settings: RetrainSettings, pass_rates: Sequence[float | None], *, is_taught: bool
) -> tuple[IntakeOutcome, str]:
    scored = [rate for rate in pass_rates if rate is not None]
    if not scored:
        return (
            IntakeOutcome.WAIT,
            f"no answer to any of {len(pass_rates)} new problems could be scored",
        )
    solved = sum(rate >= 1.0 for rate in scored)
    unsolved = len(scored) - solved
    if unsolved < settings.min_unsolved_share * len(scored) or not unsolved:
        return (
            IntakeOutcome.SKIP,
            f"the released model already solves {solved} of {len(scored)} new problems every "
            f"time; min_unsolved_share asks for {settings.min_unsolved_share:.0%} that it does not",
        )
    if not any(scored) and not is_taught:
        return (
            IntakeOutcome.SKIP,
            f"the released model never solves any of {len(scored)} new problems; without one "
            "right answer there is no reward variance to learn from",
        )
    mixed = sum(0.0 < rate < 1.0 for rate in scored)
    return (
        IntakeOutcome.LEARN,
        f"of {len(scored)} new problems the released model solves {solved} always, {mixed} "
        f"sometimes, {len(scored) - solved - mixed} never",
    )


def _grouped(suspects: Mapping[str, str]) -> list[str]:
    """Name files of the same reason together."""
    reasons = dict.fromkeys(suspects[key] for key in sorted(suspects))
    return [
        f"{', '.join(key for key in sorted(suspects) if suspects[key] == why)}: {why}"
        for why in reasons
    ]


def _listed(reasons: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(reasons.items()))
