"""How a retraining ends: what becomes of its files, and the sentence that says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data_schemas.intake import FileStatus, InboxFile, IntakeDecision, IntakeOutcome
from data_schemas.settings import RetrainSettings
from tasks.retraining.processed import MAX_REFUSALS
from tasks.retraining.worth import files_of


@dataclass(frozen=True, slots=True)
class RetrainingEnd:
    """The end of a retraining that trained a model."""

    status: FileStatus | None
    """Status of its files; None = they stay as they were."""
    message: str


def with_inputs(settings: RetrainSettings, inbox: str, model: str) -> RetrainSettings:
    """Replace the inbox and the registered model of the settings, each unless empty."""
    if inbox:
        settings = settings.model_copy(update={"inbox": inbox})
    if model:
        release = settings.release.model_copy(update={"name": model})
        settings = settings.model_copy(update={"release": release})
    return settings


def divide(
    decision: IntakeDecision, files: Sequence[InboxFile]
) -> tuple[list[InboxFile], list[InboxFile]]:
    """Return the files that people must look at, and the others."""
    suspects = [file for file in files if file.key in decision.held]
    return suspects, [file for file in files if file.key not in decision.held]


def without_training(
    decision: IntakeDecision, files: Sequence[InboxFile]
) -> dict[FileStatus, list[InboxFile]]:
    """Return the files that are not read again, by what became of them."""
    suspects, others = divide(decision, files)
    settled = {FileStatus.HELD: suspects}
    if decision.outcome is IntakeOutcome.SKIP:
        settled[FileStatus.SKIPPED] = others
    return {status: some for status, some in settled.items() if some}


def conclude(
    facts: Mapping[str, float | int | str], files: Sequence[InboxFile], failed: Sequence[str] = ()
) -> RetrainingEnd:
    """Follow the decision of the release gate.

    Args:
        facts: of the release's statement.
        files: that the candidate was trained on.
        failed: rules of the gate that did not pass, each with its numbers.
    """
    summary = f"{files_of(len(files))} ({', '.join(file.key for file in files)})"
    if facts["released"]:
        return RetrainingEnd(
            FileStatus.TRAINED, f"Promoted: version {facts['version']}, trained on {summary}."
        )
    if facts["stale"]:
        return RetrainingEnd(
            None,
            "Not promoted: another model was released while this one was trained. Its files stay "
            "in the inbox; the next run reads those that the new model does not know.",
        )
    last = [file.key for file in files if file.refusals + 1 >= MAX_REFUSALS]
    aside = (
        f" Set aside after {MAX_REFUSALS} refused models: {', '.join(last)}; to use one again, put "
        "it into the inbox under another name."
        if last
        else ""
    )
    reuse = "" if len(last) == len(files) else " Its rows are used again with the next new file."
    because = f", because {'; '.join(failed)}" if failed else ""
    return RetrainingEnd(
        FileStatus.REFUSED,
        f"Refused by the release gate: a model trained on {summary}{because}.{reuse}{aside}",
    )
