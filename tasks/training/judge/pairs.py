"""Human comparisons of two answers to one task, read from the files of PandaLM and LLMBar.

PandaLM (arXiv 2306.05087): three annotators vote 0 tie, 1 first or 2 second; the majority
counts. LLMBar (arXiv 2310.07641): one agreed label, 1 or 2, never a tie.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from data_schemas.frozen_model import FrozenModel
from tasks.errors import DataError
from tasks.gym.judging.comparison_prompt import Label

HELD_OUT_SHARE = 0.25
"""Share of the tasks on which the report is measured."""
_LABELS = (Label.TIE, Label.A, Label.B)
"""In PandaLM's numbering."""
_FORMATS = (
    "Use rows of PandaLM (instruction, input, response1, response2, annotator1..3) or of LLMBar "
    "(input, output_1, output_2, label)."
)
_Text = str | bool | int | float
"""PandaLM's files contain a few answers (False, 7) that were once parsed as JSON."""


class ComparisonPair(FrozenModel):
    """Two answers to one task and which of them people prefer."""

    id: str = Field(min_length=1)
    task: str
    answer_a: str
    answer_b: str
    label: Label
    annotators: tuple[Label, ...] = Field(
        description="individual votes; empty if only the agreed label exists"
    )
    requirements: str = Field(default="", description="what the task asks for")
    analysis_a: str = Field(default="", description="what answer A does of it; '' in human files")
    analysis_b: str = Field(default="", description="what answer B does of it")


class _PandaLM(BaseModel):
    instruction: str
    input: str = ""
    response1: _Text
    response2: _Text
    annotator1: int = Field(ge=0, le=2)
    annotator2: int = Field(ge=0, le=2)
    annotator3: int = Field(ge=0, le=2)


class _LLMBar(BaseModel):
    input: str
    output_1: _Text
    output_2: _Text
    label: int = Field(ge=1, le=2)


def read_pairs(files: Sequence[Path]) -> tuple[list[ComparisonPair], Counter[str]]:
    """Read every file, JSON lines or one JSON list.

    A row is a duplicate only if all its fields are equal. Two answers that are compared again, in
    either order, are a further comparison: in PandaLM's test set two models often give the same
    answer, and the annotators labelled each pair of models.

    Returns:
        The pairs, and the number of rows left out by reason: no majority, or duplicate.

    Raises:
        DataError: a file is missing or a row fits neither format; names file and row.
    """
    pairs: list[ComparisonPair] = []
    left_out: Counter[str] = Counter()
    keys: set[str] = set()
    for file in files:
        for place, row in enumerate(_rows(file), start=1):
            pair = _pair(row, f"{file.stem}/{place}", f"{file}, row {place}")
            if pair is None:
                left_out["no_majority"] += 1
                continue
            key = json.dumps(row, sort_keys=True)
            if key in keys:
                left_out["duplicate"] += 1
                continue
            keys.add(key)
            pairs.append(pair)
    return pairs, left_out


def majority(votes: Sequence[Label]) -> Label | None:
    """Return the label of more than half of the votes; None if there is none."""
    label, count = Counter(votes).most_common(1)[0]
    return label if 2 * count > len(votes) else None


def split_by_task(
    pairs: Sequence[ComparisonPair], seed: int
) -> tuple[list[ComparisonPair], list[ComparisonPair]]:
    """Split into (training, held out) without common tasks; case and spaces are ignored.

    Raises:
        DataError: there are fewer than two tasks.
    """
    tasks = sorted(
        {task_key(pair.task) for pair in pairs}, key=lambda task: _shuffle_key(task, seed)
    )
    if len(tasks) < 2:
        raise DataError(
            f"{len(pairs)} comparisons of {len(tasks)} tasks cannot be split into training and "
            "held-out tasks. Add files with at least two tasks that fit the model's context."
        )
    held_out_tasks = set(tasks[: max(1, round(HELD_OUT_SHARE * len(tasks)))])
    training = [pair for pair in pairs if task_key(pair.task) not in held_out_tasks]
    return training, [pair for pair in pairs if task_key(pair.task) in held_out_tasks]


def task_key(task: str) -> str:
    """Return the key of a task: its words without case."""
    return " ".join(task.casefold().split())


def by_task(pairs: Iterable[ComparisonPair]) -> dict[str, list[int]]:
    """Return the row numbers of the pairs of every task, tasks in order of appearance."""
    rows: dict[str, list[int]] = {}
    for row, pair in enumerate(pairs):
        rows.setdefault(task_key(pair.task), []).append(row)
    return rows


def _rows(file: Path) -> list[object]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}. Provide JSON lines in UTF-8.") from error
    try:
        if text.lstrip().startswith("["):
            return json.loads(text)
        # splitlines() would also cut at U+2028, which JSON allows inside a string.
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except ValueError as error:
        raise DataError(f"{file} is not JSON lines or a JSON list: {error}. {_FORMATS}") from error


def _pair(row: object, name: str, where: str) -> ComparisonPair | None:
    try:
        if isinstance(row, dict) and "response1" in row:
            return _of_pandalm(_PandaLM.model_validate(row), f"pandalm/{name}")
        return _of_llmbar(_LLMBar.model_validate(row), f"llmbar/{name}")
    except ValidationError as error:
        fields = ", ".join(str(part) for item in error.errors() for part in item["loc"])
        raise DataError(f"{where}: {fields or 'row'} is missing or wrong. {_FORMATS}") from error


def _of_pandalm(row: _PandaLM, name: str) -> ComparisonPair | None:
    votes = tuple(_LABELS[vote] for vote in (row.annotator1, row.annotator2, row.annotator3))
    label = majority(votes)
    if label is None:
        return None
    return ComparisonPair(
        id=name,
        task=f"{row.instruction}\n{row.input}".strip(),
        answer_a=str(row.response1),
        answer_b=str(row.response2),
        label=label,
        annotators=votes,
    )


def _of_llmbar(row: _LLMBar, name: str) -> ComparisonPair:
    return ComparisonPair(
        id=name,
        task=row.input,
        answer_a=str(row.output_1),
        answer_b=str(row.output_2),
        label=_LABELS[row.label],
        annotators=(),
    )


def _shuffle_key(task: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{task}".encode()).hexdigest()
