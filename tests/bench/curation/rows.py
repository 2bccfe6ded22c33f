"""Rows of any number, made of public ones: new ones, exact copies and near copies.

A new row is a question of GSM8K behind the first sentence of another one. Which rows are copies of
which is decided by the seed, and known.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from tasks.errors import DataError

EXACT, NEAR = 0.1, 0.1
"""Share of the rows that repeat an earlier one, and that repeat it but for one word."""
_ADDED = ("please", "now", "today", "kindly")


def make_rows(data: Path, count: int, seed: int) -> Iterator[dict[str, str]]:
    """Yield rows in the layout of GSM8K.

    Args:
        data: folder that has gsm8k/train.jsonl.
        count: number of rows.
        seed: of the draw.

    Raises:
        DataError: the file cannot be read.
    """
    path = data / "gsm8k" / "train.jsonl"
    try:
        with path.open() as lines:
            rows: list[dict[str, str]] = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Set DATA.") from error
    starts = [row["question"].partition(". ")[0] for row in rows]
    draws = random.Random(seed)
    for number in range(count):
        kind = draws.random()
        # What is copied is drawn again from its number, so that no row has to be remembered.
        place = draws.randrange(number) if number and kind < EXACT + NEAR else number
        made = random.Random(f"{seed}/{place}")
        row = rows[made.randrange(len(rows))]
        asked = f"{starts[made.randrange(len(starts))]}. {row['question']}"
        if place != number and kind >= EXACT:
            asked = f"{asked} {draws.choice(_ADDED)}"
        # Curation keeps the smallest id of several duplicates, the other tools the first row.
        yield {"id": f"{number:09d}", "question": asked, "answer": row["answer"]}


def write_rows(data: Path, count: int, seed: int, path: Path) -> None:
    """Write rows as JSON lines."""
    with path.open("w") as out:
        for row in make_rows(data, count, seed):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
