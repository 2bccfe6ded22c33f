"""Files that people have to look at before anything is learned from them.

Three things are seen in the rows alone: a file that cannot be read, or not behind some place; one
most of whose rows cannot be used (another schema); and one that gives known questions other answers
than before (wrong labels, or somebody's attempt to teach them). Each is set aside by itself; the
night goes on with the others. Files most of whose problems have nothing in common with the known
ones (a new language) are set aside together. A file that somebody approved is never suspect.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.drift import Conflict
from data_schemas.intake import InboxFile
from data_schemas.rows import (
    DEMONSTRATIONS,
    PROBLEMS,
    QUARANTINE,
    ROWS,
    Demonstration,
    Facet,
    Outcome,
    Problem,
    QuarantinedItem,
)
from data_schemas.sources import RowPlace
from tasks.curation.adapters.general import COMPARISON
from tasks.formats.content import content_key
from tasks.formats.known import rows_of_files
from tasks.retraining import drift

MAX_UNUSABLE = 0.5
"""Share of the rows of a file that are quarantined and give nothing else."""
MIN_UNUSABLE = 5
"""Fewer unusable rows are quarantined as everywhere, and say nothing about their file."""
UNREAD = ("damaged_file", "damaged_rows", "repeated_column", "unknown_adapter", "unknown_suffix")
"""Reasons that stand for rows which nobody has seen: however few, somebody has to look."""
MAX_CONTRADICTIONS = 0.2
"""Share of the problems of a file with another answer than known. Fewer are chance: a question may
have several right answers, and code several sets of tests."""
MIN_CONTRADICTIONS = 5
NUM_CONFLICTS = 5
"""Contradictions that people are shown: old answer and new one."""
_JUDGE = (
    " (comparisons of answers train a judge, which a night does not: eachprompt judge --files; "
    "then name it in rl.rewards)"
)


@dataclass(frozen=True, slots=True)
class FileRows:
    """What curation and the known rows say about one file."""

    rows: int
    unusable: int
    reasons: Mapping[str, int]
    problems: int
    contradictions: int

    @property
    def fault(self) -> str:
        """Why people must look at the file; '' if they need not."""
        is_much = self.unusable >= MIN_UNUSABLE and self.unusable > MAX_UNUSABLE * self.rows
        is_all = 0 < self.rows <= self.unusable
        if is_much or is_all or any(reason in self.reasons for reason in UNREAD):
            reasons = ", ".join(f"{name} {count}" for name, count in sorted(self.reasons.items()))
            hint = _JUDGE if COMPARISON in self.reasons else ""
            return f"{self.unusable} of {self.rows} rows cannot be used: {reasons}{hint}"
        limit = max(MIN_CONTRADICTIONS, MAX_CONTRADICTIONS * self.problems)
        if self.contradictions >= limit:
            return (
                f"{self.contradictions} of {self.problems} problems have another answer than the "
                "same question in rows that the released model knows"
            )
        return ""


def suspects(
    curated: Path, earlier: Sequence[Problem], files: Sequence[InboxFile]
) -> dict[str, str]:
    """Return the files that people must look at: key -> reason.

    Args:
        curated: folder of the curated set of these files.
        earlier: problems of the released model.
        files: with the digests of their copies.
    """
    answers = _answers(earlier)
    places = read_table(curated / ROWS, RowPlace)
    file_of = {place.source_row: place.file for place in places}
    rows = Counter(place.file for place in places)
    # The same damage may lie in several files, and in one of them several times.
    files_of: dict[str, Counter[str]] = defaultdict(Counter)
    for place in places:
        files_of[place.source_row][place.file] += 1
    settled = {
        record.source_row
        for name, model in ((PROBLEMS, Problem), (DEMONSTRATIONS, Demonstration))
        for record in read_table(curated / name, model)
    }
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for refusal in read_table(curated / QUARANTINE, QuarantinedItem):
        if refusal.outcome is Outcome.QUARANTINED and refusal.source_row not in settled:
            settled.add(refusal.source_row)  # a row counts once, with its first reason
            for file, count in files_of[refusal.source_row].items():
                reasons[file][refusal.reason] += count
    problems, contradictions = Counter[str](), Counter[str]()
    for problem in read_table(curated / PROBLEMS, Problem):
        known_answers = answers.get(content_key(problem), {problem.answer})
        problems[file_of[problem.source_row]] += 1
        contradictions[file_of[problem.source_row]] += problem.answer not in known_answers
    faults = {
        file.key: FileRows(
            rows=rows[file.sha256],
            unusable=reasons[file.sha256].total(),
            reasons=reasons[file.sha256],
            problems=problems[file.sha256],
            contradictions=contradictions[file.sha256],
        ).fault
        for file in files
        if not file.approved_by
    }
    return {key: fault for key, fault in faults.items() if fault}


def conflicts(
    curated: Path, earlier: Sequence[Problem], files: Sequence[InboxFile], keys: Collection[str]
) -> tuple[Conflict, ...]:
    """Return the first problems of some files whose answer is another one than known.

    Args:
        curated: folder of the curated set of these files.
        earlier: problems of the released model.
        files: with the digests of their copies.
        keys: of the files.
    """
    answers = _answers(earlier)
    key_of = {file.sha256: file.key for file in files if file.key in keys}
    file_of = {
        place.source_row: key_of[place.file]
        for place in read_table(curated / ROWS, RowPlace)
        if place.file in key_of
    }
    others = (
        Conflict(
            file=file_of[problem.source_row],
            prompt=problem.prompt_text,
            known=tuple(sorted(answers[content_key(problem)])),
            new=problem.answer,
        )
        for problem in read_table(curated / PROBLEMS, Problem)
        if problem.source_row in file_of
        and problem.answer not in answers.get(content_key(problem), {problem.answer})
    )
    return tuple(islice(others, NUM_CONFLICTS))


def _answers(problems: Sequence[Problem]) -> Mapping[str, set[str]]:
    answers: dict[str, set[str]] = defaultdict(set)
    for problem in problems:
        answers[content_key(problem)].add(problem.answer)
    return answers


def digests(files: Sequence[InboxFile], keys: Collection[str]) -> set[str]:
    """Return the sha256 of the files with these keys."""
    return {file.sha256 for file in files if file.key in keys}


def strangers(
    min_rows: int,
    curated: Path,
    earlier: Sequence[Problem],
    facets: Sequence[Facet],
    files: Sequence[InboxFile],
    suspect_keys: Collection[str],
) -> dict[str, str]:
    """Return the files whose problems have next to nothing in common with the known ones.

    Args:
        min_rows: problems of a night, those of approved files included; fewer wait for more.
        curated: folder of the curated set of these files.
        earlier: problems of the released model.
        facets: of both.
        files: with the digests of their copies.
        suspect_keys: keys of files that are set aside already.
    """
    asking = [file for file in files if not file.approved_by and file.key not in suspect_keys]
    others = {file.sha256 for file in files} - {file.sha256 for file in asking}
    if len(without(curated, digests(files, suspect_keys))) < min_rows:
        return {}
    change = drift.measure(earlier, without(curated, others), facets)
    foreign = [field for field in change.fields if field.is_foreign]
    if not foreign:
        return {}
    values = ", ".join(f"{field.field} ({field.unknown:.0%})" for field in foreign)
    reason = (
        f"most of the problems have a value that no problem of the released model has: {values}"
    )
    return {file.key: reason for file in asking}


def without(curated: Path, file_digests: Collection[str]) -> list[Problem]:
    """Read the problems of a curated set, but for those of some files.

    Args:
        curated: folder of the set.
        file_digests: sha256 of the files.
    """
    aside = rows_of_files(curated, set(file_digests))
    problems = read_table(curated / PROBLEMS, Problem)
    return [problem for problem in problems if problem.source_row not in aside]
