"""Verdicts on a table of one's own, a gold and an answer a row, with math-verify's beside them."""

import csv
import io
import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import cast

from pydantic import JsonValue
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from data_schemas.rows import (
    THINK_CLOSE,
    THINK_OPEN,
    Domain,
    Message,
    Problem,
    Role,
    is_language_tag,
)
from data_schemas.verdicts import Verdict, abstain
from tasks.curation.adapters.mapped import as_language, as_written
from tasks.curation.first_rows import FIRST, check_rewards
from tasks.curation.items import Item
from tasks.curation.readers.missing import is_missing, is_null
from tasks.curation.rows import BadRow, RawRow, UnreadableRow, check_readable, read_rows
from tasks.errors import DataError, SettingsError
from tasks.gym.maths import final_answer
from tasks.gym.table import score_batch
from tasks.store.files import canonical_json, write_bytes

COLUMNS = ("question", "gold", "answer", "language")
"""What a column may be; without a question or a language, "" and the option are taken."""
NEEDED = ("gold", "answer")
SHOWN_CHARACTERS = 60
_ASKING = ("user", "human")
_BESIDE = ("system", "developer", "tool", "function")
"""Roles whose words are no answer."""
_NO_QUESTION = (
    "Read without questions, which say what is asked for (a unit, a form, a modulus): "
    "--column question=NAME"
)
# "$", "\\boxed{", "\\(": math-verify looks for LaTeX between such marks only.
_DELIMITED = re.compile(r"\$|\\boxed|\\[(\[]")
# A word of a sentence; not the name of a command.
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}|\n")


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One row of the table."""

    key: str
    gold: str
    answer: str
    verdict: Verdict
    other: bool | None
    """math-verify's verdict; None where it reads no gold."""

    @property
    def differ(self) -> bool:
        """Whether the two verdicts differ; an abstention is none."""
        return not self.verdict.abstained and self.other not in (None, self.verdict.solved)


def columns_of(pairs: list[str]) -> dict[str, str]:
    """Read `gold=reference`: the names of columns by what they are.

    Raises:
        SettingsError: it is no such pair.
    """
    result = {name: name for name in COLUMNS}
    for pair in pairs:
        role, _, name = pair.partition("=")
        if role not in COLUMNS or not name:
            raise SettingsError(
                f"--column {pair!r} is not ROLE=NAME with a role of {', '.join(COLUMNS)}"
            )
        result[role] = name
    return result


def verify_rows(
    path: Path, columns: Mapping[str, str], verifier: str, language: str
) -> Iterator[VerdictRow]:
    """Verify the rows of a table in order; a row that cannot be read is an abstention.

    Args:
        path: CSV, JSON lines, Parquet or a workbook, as sources of a run are.
        columns: as `columns_of`.
        verifier: of final answers.
        language: of rows without a language.

    Raises:
        SettingsError: none of the first rows can be read, none has a column that is needed, one of
            them has lists in it, or half of the first golds or more earn no full marks as their
            own answers.
    """
    opened = list(islice(read_rows(path), FIRST))
    first = [row for row in opened if isinstance(row, RawRow)]
    if not first:
        raise SettingsError(f"{path.name} has no readable row: {_problem_of(path, opened)}")
    _check_columns(first, columns)
    opening = _opening([_answer(row, columns["answer"]) for row in first])
    golds: list[Item] = []
    for row in first:
        with suppress(BadRow):  # it gets its reason below
            problem = _problem(row, columns, verifier, language)
            golds += [Item(problem, problem.prompt_text)] if _value(problem) else []
    check_rewards(golds, f"{path}, column {columns['gold']!r}", score_batch)
    for row in read_rows(path):
        try:
            if isinstance(row, UnreadableRow):
                raise row.problem
            yield _verified(row, columns, verifier, language, opening)
        except BadRow as error:
            yield VerdictRow(row.key, "", "", abstain(error.reason, error.detail), None)


def _problem_of(path: Path, rows: Sequence[RawRow | UnreadableRow]) -> str:
    """Say what is wrong with a file, or else with the first of its rows, none of which is read."""
    try:
        check_readable(path)
    except DataError as error:
        return str(error)
    row = next(iter(rows), None)
    if not isinstance(row, UnreadableRow):
        return "it has a header at most"
    return row.problem.detail or row.problem.reason


def _check_columns(rows: Sequence[RawRow], columns: Mapping[str, str]) -> None:
    present = {name for row in rows for name in row.fields}
    missing = [role for role in NEEDED if columns[role] not in present]
    if missing:
        parts = [f"no column {columns[role]!r} for the {role}" for role in missing]
        raise SettingsError(
            f"{', '.join(parts)}; say {' '.join(f'--column {role}=NAME' for role in missing)} with "
            f"names of {', '.join(sorted(present))}"
        )
    for row, role in product(rows, COLUMNS):
        if other := _other_than_text(row.fields.get(columns[role])):
            raise SettingsError(
                f"column {columns[role]!r}, the {role}, has {other} in row {row.key}. Write one "
                "text a row, so that a row with several answers becomes several rows"
            )


def _other_than_text(value: object) -> str:
    """Describe a list or an object that is no chat; '' for any other cell."""
    if not isinstance(value, list | dict) or _is_chat(value):
        return ""
    return f"{'a list' if isinstance(value, list) else 'an object'}: {str(value)[:60]!r}"


def _opening(answers: Iterable[str]) -> str:
    """Return what the prompts said of the answers: `<think>` if some only have its end.

    Then one without any tag was cut within its thought, and answers nothing.
    """
    cut = any(THINK_CLOSE in answer and THINK_OPEN not in answer for answer in answers)
    return THINK_OPEN if cut else ""


def _verified(
    row: RawRow, columns: Mapping[str, str], verifier: str, language: str, opening: str
) -> VerdictRow:
    for role in NEEDED:
        if columns[role] not in row.fields:
            raise BadRow("missing_field", f"the row has no {columns[role]!r}")
    problem = _problem(row, columns, verifier, language)
    gold, answer = _value(problem), _answer(row, columns["answer"], problem.language)
    if not gold:
        raise BadRow("empty_field", f"{columns['gold']!r} is blank")
    whole = answer if answer.startswith(THINK_OPEN) else opening + answer
    (verdict,) = score_batch([problem], [whole])
    # math-verify reads points of decimals only.
    theirs = _math_verify(_cell(row, columns["gold"]), _answer(row, columns["answer"]))
    return VerdictRow(row.key, gold, answer, verdict, theirs)


def _problem(row: RawRow, columns: Mapping[str, str], verifier: str, language: str) -> Problem:
    question, own = (_cell(row, columns[role]) for role in ("question", "language"))
    language = language if is_missing(own) else as_language(own)
    gold = _cell(row, columns["gold"], language)
    if gold and is_null(gold):
        raise BadRow("empty_field", f"{columns['gold']!r} is {gold!r}, which stands for none")
    return Problem(
        id=row.key,
        domain=Domain.MATHS,
        language=language,
        messages=(Message(role=Role.USER, content=question or "?"),),
        verifier=verifier,
        answer=canonical_json({"value": gold}).decode(),
        source="table",
        source_row=row.source_row,
    )


def _value(problem: Problem) -> str:
    return json.loads(problem.answer)["value"]


def _cell(row: RawRow, column: str, language: str = "en") -> str:
    """Return a cell as text, of a chat what its turns say, and a number as the language writes it.

    Raises:
        BadRow: it is another list, or an object, whose own form in Python nobody answered with.
    """
    value = row.optional(column, "")
    if other := _other_than_text(value):
        raise BadRow("not_text", f"{column!r} has {other}")
    if _is_chat(value):
        value = "\n".join(turn["content"] for turn in cast("list[dict[str, str]]", value))
    return str(as_written(cast("JsonValue", value), language)).strip()


def _answer(row: RawRow, column: str, language: str = "en") -> str:
    """Return a cell as `_cell`; of a whole chat what stands behind the last question alone.

    A question often has its gold among options: its words are not the model's.
    """
    value = row.optional(column, "")
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        with suppress(ValueError, RecursionError):  # a text that is no chat stays a text
            value = json.loads(value)
    if not value or not _is_chat(value):
        return _cell(row, column, language)
    texts: list[str] = []
    for turn in cast("list[dict[str, str]]", value):
        role = str(turn.get("role", "")).lower()
        if role in _ASKING:
            texts.clear()
        elif role not in _BESIDE:
            texts.append(turn["content"])
    return "\n".join(texts).strip()


def _is_chat(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(turn, dict) and isinstance(turn.get("content"), str) for turn in value
    )


def _math_verify(gold: str, answer: str) -> bool | None:
    """Return math-verify's verdict with its defaults; None if it reads no gold."""
    from math_verify import parse, verify  # sympy takes a second to import

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    ours = parse(gold if _DELIMITED.search(gold) else f"${gold}$")
    bare = not _DELIMITED.search(answer) and not _WORD.search(answer)  # a column of formulas
    ways = (answer, f"${answer}$") if bare else (answer,)
    return any(verify(ours, parse(way)) for way in ways) if ours else None


def show(
    path: Path, pairs: list[str], out: Path, *, verifier: str, language: str, most: int
) -> None:
    """Verify a table, write every verdict as CSV, print the counts and where math-verify differs.

    Raises:
        SettingsError: the table or a column of it is missing, or `out` is there already.
    """
    if not path.is_file():
        raise SettingsError(f"{path} is no file; name a table")
    if out.exists():
        whose = "the table itself" if out.samefile(path) else "there already"
        raise SettingsError(f"--out {out} is {whose}, and is not written over; name another file")
    if not is_language_tag(language):
        raise SettingsError(f"--language {language!r} is no tag of a language, such as en or pt-BR")
    columns = columns_of(pairs)
    rows = list(verify_rows(path, columns, verifier, language))
    final_answer.close()
    write_bytes(out, as_csv(rows).encode())
    console = Console(highlight=False)
    counts = Counter((_word(one.verdict.score), one.verdict.reason) for one in rows)
    for (word, reason), count in counts.most_common():
        console.print(f"{count:>8}  {word:10}  {reason}", markup=False)
    differing = [one for one in rows if one.differ]
    console.print(f"{len(differing):>8}  math-verify decides otherwise", markup=False)
    if differing:
        console.print(_table(differing[:most]))
    first = islice(read_rows(path), FIRST)
    if not any(isinstance(row, RawRow) and columns["question"] in row.fields for row in first):
        console.print(_NO_QUESTION, markup=False)
    console.print(f"Every row: {out}", markup=False)


def as_csv(rows: list[VerdictRow]) -> str:
    """Write the verdicts with their reasons, a row each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("row", "gold", "score", "reason", "detail", "math_verify"))
    for one in rows:
        score = "" if one.verdict.score is None else f"{one.verdict.score:g}"
        other = "" if one.other is None else str(int(one.other))
        writer.writerow((one.key, one.gold, score, one.verdict.reason, one.verdict.detail, other))
    return text.getvalue()


def _word(score: float | None) -> str:
    return "abstains" if score is None else "right" if score == 1.0 else "wrong"


def _table(rows: list[VerdictRow]) -> Table:
    result = Table(box=None)
    for head in ("row", "gold", "end of the answer", "here", "math-verify", "detail"):
        result.add_column(head, overflow="fold")
    for one in rows:
        end = " ".join(one.answer.split())[-SHOWN_CHARACTERS:]
        here, other = _word(one.verdict.score), _word(float(bool(one.other)))
        cells = (one.key, one.gold[:SHOWN_CHARACTERS], end, here, other, one.verdict.detail)
        result.add_row(*map(escape, cells))
    return result
