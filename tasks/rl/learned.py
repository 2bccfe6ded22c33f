"""What a phase has learned of its prompts, for the phase after it.

Their records and the position in the curriculum, in the phase's report. A second phase would else
begin with the grading of the model before the first one: it would skip and roll out the wrong
prompts until every record was made anew, and begin the curriculum with its first band.
"""

from collections.abc import Sequence
from pathlib import Path

from data_schemas.frozen_model import FrozenModel
from data_schemas.rl_settings import RLSettings
from data_schemas.rows import Domain, Problem
from tasks.rl.prompts import CurriculumPosition, PromptHistory, PromptRecord
from tasks.store.files import canonical_json, write_bytes

LEARNED_FILE = "prompt_records.json"


class PromptMemory(FrozenModel):
    """State of prompts and curriculum at the end of a phase."""

    records: dict[str, PromptRecord]
    """By problem, those of grading included."""
    position: CurriculumPosition
    curriculum: tuple[tuple[float, float], ...]
    domains: tuple[Domain, ...]
    """Position, its bands and the domains of its prompts."""


def learned_in(
    settings: RLSettings, records: dict[str, PromptRecord], position: CurriculumPosition
) -> PromptMemory:
    """Put together what a phase of these settings has learned."""
    return PromptMemory(
        records=records,
        position=position,
        curriculum=settings.zero_variance.curriculum,
        domains=tuple(sorted(settings.domains)),
    )


def write_learned(folder: Path, learned: PromptMemory) -> None:
    """Write it into the report of the phase."""
    write_bytes(folder / LEARNED_FILE, canonical_json(learned))


def read_learned(folder: Path) -> PromptMemory | None:
    """Read it from a phase's report; None from that of a phase without steps."""
    path = folder / LEARNED_FILE
    return PromptMemory.model_validate_json(path.read_bytes()) if path.exists() else None


def first_records(
    problems: Sequence[Problem], before: PromptMemory | None
) -> dict[str, PromptRecord]:
    """Return the records that a phase starts with: grading's, under those of the phase before."""
    records = PromptHistory.graded(problems).records()
    if before is not None:
        common = {problem.id for problem in problems} & before.records.keys()
        records |= {name: before.records[name] for name in sorted(common)}
    return records


def first_position(settings: RLSettings, before: PromptMemory | None) -> CurriculumPosition:
    """Return the position in the curriculum that a phase starts with.

    It goes on where the phase before had the same bands and domains; accuracies in other domains
    say nothing about when a band is learned.
    """
    if before is None or before.position.number >= len(settings.zero_variance.curriculum):
        return CurriculumPosition()
    now = learned_in(settings, {}, before.position)
    same = now.curriculum == before.curriculum and now.domains == before.domains
    return before.position if same else CurriculumPosition()
