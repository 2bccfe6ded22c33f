"""The sample school: science with units and general questions, beside the sample world.

`problems.jsonl` contains questions, `demonstrations.jsonl` others with the response of one of the
sample world's three teachers. Wrong responses are not marked: curation verifies all of them.
"""

import json
import random
from itertools import islice
from pathlib import Path

from data_schemas.demonstrations import Parent
from data_schemas.prompts import Domain
from tasks.curation.sample_world import taught
from tasks.marketplace.drawing import SCHOOL, draw_items
from tasks.marketplace.items import Item
from tasks.store.files import write_bytes

PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
PROBLEMS_PER_DOMAIN = 300
DEMONSTRATIONS_PER_PARENT: dict[Parent, dict[Domain, int]] = {
    Parent.REASONING: {Domain.SCIENCE: 500, Domain.GENERAL: 150},
    Parent.COMMERCE: {Domain.GENERAL: 500, Domain.SCIENCE: 150},
}


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    rng = random.Random(f"sample school/{seed}")
    problems = [
        _row(item)
        for domain in SCHOOL
        for item in islice(draw_items(rng, domain, problems=True), PROBLEMS_PER_DOMAIN)
    ]
    demonstrations = [
        _row(item) | {"parent": parent, "response": taught(rng, item)[1]}
        for parent, amounts in DEMONSTRATIONS_PER_PARENT.items()
        for domain, amount in amounts.items()
        for item in islice(draw_items(rng, domain, problems=False), amount)
    ]
    for name, rows in ((PROBLEMS, problems), (DEMONSTRATIONS, demonstrations)):
        lines = [
            json.dumps({"id": f"{name[0]}{number:05d}", **row}, ensure_ascii=False)
            for number, row in enumerate(rows)
        ]
        write_bytes(folder / name, ("\n".join(lines) + "\n").encode())


def _row(item: Item) -> dict[str, object]:
    return {
        "domain": item.domain,
        "language": item.language,
        "level": item.level,
        "prompt": item.prompt,
        "verifier": item.verifier,
        "answer": item.answer,
    }
