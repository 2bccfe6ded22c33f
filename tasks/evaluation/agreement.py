"""Compare two verifiers of final answers on the same graded responses.

Reads JSON lines or parquet with a gold answer, a response and, optionally, a recorded verdict.
Computes the counts, a table of the disputed rows and a CSV with every row. Verifiers are only
called through the verifier table of rewards.
"""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table
from rich.text import Text

from data_schemas.rows import Domain, Message, Problem, Role
from data_schemas.verdicts import Verdict
from tasks.errors import DataError
from tasks.store.files import canonical_json

VERIFIERS = ("final_answer", "rule_answer")
GOLD = ("gold", "answer", "value")
RESPONSE = ("response", "solution", "pred")
LABEL = ("label", "verdict", "is_correct", "expected")
VERDICTS = dict.fromkeys(("true", "right", "correct"), True) | dict.fromkeys(
    ("false", "wrong", "incorrect"), False
)
SHOWN_CHARACTERS = 60

ScoreBatch = Callable[[Sequence[Problem], Sequence[str]], Sequence[Verdict]]


@dataclass(frozen=True, slots=True)
class GradedResponse:
    """One response with its gold answer, and the recorded verdict if there is one."""

    id: str
    gold: str
    response: str
    label: bool | None


@dataclass(frozen=True, slots=True)
class VerdictPair:
    """The verdicts of both verifiers on one response."""

    graded: GradedResponse
    final: Verdict
    rule: Verdict

    @property
    def agree(self) -> bool:
        """Return True if both verdicts are equal, or both verifiers abstain."""
        return _reward(self.final) == _reward(self.rule)


def read_graded(name: str, payload: bytes) -> list[GradedResponse]:
    """Read a file of graded responses; columns are identified by their names.

    Args:
        name: of the file; `.parquet` is read as parquet, anything else as JSON lines.
        payload: its bytes.

    Raises:
        DataError: a row has no gold answer or no response, a recorded verdict is none, or there is
            no row.
    """
    if name.endswith(".parquet"):
        try:
            rows = pq.read_table(pa.BufferReader(payload)).to_pylist()
        except pa.ArrowInvalid as error:
            raise DataError(f"{name} is no parquet file: {error}") from error
    else:
        rows = [_json_row(name, i, line) for i, line in enumerate(payload.splitlines()) if line]
    if not rows:
        raise DataError(f"{name} has no row. Provide graded responses, one JSON object per line.")
    return [_parse_row(name, place, row) for place, row in enumerate(rows)]


def compare_all(rows: Sequence[GradedResponse], score_batch: ScoreBatch) -> list[VerdictPair]:
    """Score every response with both verifiers."""
    verdicts = [
        score_batch([_problem(row, verifier) for row in rows], [row.response for row in rows])
        for verifier in VERIFIERS
    ]
    return [VerdictPair(*row) for row in zip(rows, *verdicts, strict=True)]


def facts(compared: Sequence[VerdictPair]) -> dict[str, int]:
    """Count agreements, disagreements, abstentions by reason, and agreement with the records."""
    marks = Counter((_reward(row.final), _reward(row.rule)) for row in compared)
    counts = {
        "responses": len(compared),
        "both right": marks[1, 1],
        "both wrong": marks[-1, -1],
        "only final_answer": marks[1, -1],
        "only rule_answer": marks[-1, 1],
        "one or both abstain": sum(n for pair, n in marks.items() if None in pair),
    }
    for name, verdicts in _by_verifier(compared).items():
        reasons = Counter(verdict.reason for verdict in verdicts if verdict.abstained)
        counts |= {f"{name} abstains: {why}": n for why, n in sorted(reasons.items())}
    labelled = [row for row in compared if row.graded.label is not None]
    if labelled:
        counts["recorded verdicts"] = len(labelled)
        for name, verdicts in _by_verifier(labelled).items():
            pairs = zip(verdicts, labelled, strict=True)
            counts[f"{name} as recorded"] = sum(
                not verdict.abstained and verdict.solved == row.graded.label
                for verdict, row in pairs
            )
    return counts


def select_disputed(compared: Sequence[VerdictPair]) -> list[VerdictPair]:
    """Return the responses whose two verdicts differ from each other or from the record."""
    return [
        row
        for row in compared
        if not row.agree or (row.graded.label is not None and row.final.solved != row.graded.label)
    ]


def counts_table(title: str, counts: Mapping[str, int]) -> Table:
    """Format the counts as a table."""
    table = Table(title=Text(title))
    table.add_column("")
    table.add_column("rows", justify="right")
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    return table


def rows_table(rows: Sequence[VerdictPair], limit: int) -> Table:
    """Format the first disputed rows as a table."""
    table = Table(title=f"Disputed: {min(limit, len(rows))} of {len(rows)}")
    for column in ("id", "gold", "response ends", "recorded", *VERIFIERS):
        table.add_column(column, overflow="fold")
    for row in rows[:limit]:
        cells = (
            row.graded.id,
            row.graded.gold[:SHOWN_CHARACTERS],
            row.graded.response.strip()[-SHOWN_CHARACTERS:],
            {None: "", True: "right", False: "wrong"}[row.graded.label],
            _format_verdict(row.final),
            _format_verdict(row.rule),
        )
        table.add_row(*map(Text, cells))  # Text, because [x, 1] is not markup
    return table


def to_csv(compared: Sequence[VerdictPair]) -> bytes:
    """Write every row with both verdicts, in order."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f"{name}_{part}" for name in VERIFIERS for part in ("reward", "reason", "detail")]
    writer.writerow(["id", "gold", "response", "recorded", *names])
    for row in compared:
        cells = [
            cell
            for verdict in (row.final, row.rule)
            for cell in (_reward(verdict), verdict.reason, verdict.detail)
        ]
        graded = row.graded
        writer.writerow([graded.id, graded.gold, graded.response, graded.label, *cells])
    return text.getvalue().encode()


def _by_verifier(compared: Sequence[VerdictPair]) -> dict[str, list[Verdict]]:
    return dict(
        zip(VERIFIERS, ([r.final for r in compared], [r.rule for r in compared]), strict=True)
    )


def _reward(verdict: Verdict) -> int | None:
    """Return 1 for a right answer, -1 for a wrong one, None without a verdict."""
    return None if verdict.abstained else 1 if verdict.solved else -1


def _format_verdict(verdict: Verdict) -> str:
    reward = _reward(verdict)
    return f"{'?' if reward is None else f'{reward:+d}'} {verdict.reason}"


def _json_row(name: str, place: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(f"{name}, line {place + 1}: {error}") from error
    if not isinstance(row, dict):
        raise DataError(f"{name}, line {place + 1} is not a JSON object: {line[:60]!r}")
    return row


def _parse_row(name: str, place: int, row: Mapping[str, Any]) -> GradedResponse:
    columns = {
        part: next((key for key in keys if row.get(key) is not None), None)
        for part, keys in (("gold", GOLD), ("response", RESPONSE), ("label", LABEL))
    }
    gold, response, label = columns.values()
    if gold is None or response is None:
        raise DataError(
            f"{name}, row {place}: needs one of {', '.join(GOLD)} and one of "
            f"{', '.join(RESPONSE)}; it has {', '.join(row) or 'nothing'}."
        )
    return GradedResponse(
        id=str(row.get("id", place)),
        gold=str(row[gold]),
        response=str(row[response]),
        label=None if label is None else _is_right(row[label], f"{name}, row {place}: {label}"),
    )


def _is_right(value: object, where: str) -> bool | None:
    """Read a recorded verdict: a reward of -1 is a wrong answer, and so is the word 'false'.

    Not a number is none, as an empty cell of parquet is read.

    Raises:
        DataError: it is neither a number nor one of the words.
    """
    if isinstance(value, bool | int | float):
        return None if math.isnan(value) else value > 0
    if (word := str(value).strip().lower()) not in VERDICTS:
        raise DataError(f"{where} is {value!r}. Use true or false, or a number above 0 for right.")
    return VERDICTS[word]


def _problem(row: GradedResponse, verifier: str) -> Problem:
    return Problem(
        id=row.id,
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content="graded elsewhere"),),
        verifier=verifier,
        answer=canonical_json({"value": row.gold}).decode(),
        source="graded",
        source_row=row.id,
    )
