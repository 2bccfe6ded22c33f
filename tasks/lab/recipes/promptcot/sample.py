"""The sample world of a solver who errs: maths problems, and terse answers to other ones.

Problems and demonstrations share no item for any seed.
"""

import json
import random
from itertools import islice
from pathlib import Path

from data_schemas.rows import Domain, Message, Parent, Role
from tasks.curation.adapters.table import Adapter
from tasks.curation.adapters.verified import verified
from tasks.curation.items import Item as CuratedItem
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.rows import RawRow
from tasks.store.files import write_bytes

PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
NUM_PROBLEMS = 2400
NUM_DEMONSTRATIONS = 600
SOURCE = f"{__name__}:SAMPLE"


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    rng = random.Random(f"sample solver/{seed}")
    problems = islice(draw_items(rng, Domain.MATHS, problems=True), NUM_PROBLEMS)
    items = islice(draw_items(rng, Domain.MATHS, problems=False), NUM_DEMONSTRATIONS)
    _write(folder / PROBLEMS, [{"id": f"p{n:05d}"} | _row(item) for n, item in enumerate(problems)])
    answers = [
        {"id": f"d{n:05d}"} | _row(item) | {"parent": Parent.REASONING, "response": item.terse}
        for n, item in enumerate(items)
    ]
    _write(folder / DEMONSTRATIONS, answers)


def sample_solver(row: RawRow) -> list[CuratedItem]:
    """Read a row of the solver."""
    return verified("sample_solver", row)


SAMPLE = Adapter(
    sample_solver,
    ("domain", "language", "messages", "verifier", "answer"),
    (PROBLEMS, DEMONSTRATIONS),
    generate,
)


def _row(item: MarketItem) -> dict[str, object]:
    message = Message(role=Role.USER, content=item.prompt)
    return {
        "domain": Domain.MATHS,
        "language": item.language,
        "level": item.level,
        "messages": [message.model_dump(mode="json")],
        "verifier": item.verifier,
        "answer": item.answer,
    }


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    write_bytes(path, ("\n".join(lines) + "\n").encode())
