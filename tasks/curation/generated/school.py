"""Science with units, and general questions, for recipes that train them beside the sample world.

Of each, `problems.jsonl` contains questions, `demonstrations.jsonl` others with the response of one
of the sample world's three teachers. Wrong responses are not marked: curation verifies all of them.
"""

import json
import random
from functools import partial
from itertools import islice
from pathlib import Path

from data_schemas.rows import Domain, Parent
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.sample_world import teach
from tasks.store.files import write_bytes

PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
PROBLEMS_PER_DOMAIN = 600
SCIENCE, GENERAL = "sample_science", "sample_general"
DOMAINS = {SCIENCE: Domain.SCIENCE, GENERAL: Domain.GENERAL}
DEMONSTRATIONS_PER_PARENT: dict[str, dict[Parent, int]] = {
    SCIENCE: {Parent.REASONING: 500, Parent.COMMERCE: 150},
    GENERAL: {Parent.COMMERCE: 500, Parent.REASONING: 150},
}
"""A share for the other parent keeps the two mergeable, as in the sample world."""


def generate(source: str, seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes.

    Args:
        source: SCIENCE or GENERAL.
        seed: of everything drawn.
        folder: exists or is made.
    """
    rng = random.Random(f"{source}/{seed}")
    domain = DOMAINS[source]
    problems = [
        _row(item) for item in islice(draw_items(rng, domain, problems=True), PROBLEMS_PER_DOMAIN)
    ]
    demonstrations = [
        _row(item) | {"parent": parent, "response": teach(rng, item)[1]}
        for parent, amount in DEMONSTRATIONS_PER_PARENT[source].items()
        for item in islice(draw_items(rng, domain, problems=False), amount)
    ]
    for name, rows in ((PROBLEMS, problems), (DEMONSTRATIONS, demonstrations)):
        lines = [
            json.dumps({"id": f"{name[0]}{number:05d}", **row}, ensure_ascii=False)
            for number, row in enumerate(rows)
        ]
        write_bytes(folder / name, ("\n".join(lines) + "\n").encode())


GENERATORS = {source: partial(generate, source) for source in DOMAINS}


def _row(item: MarketItem) -> dict[str, object]:
    return {
        "domain": item.domain,
        "language": item.language,
        "level": item.level,
        "prompt": item.prompt,
        "verifier": item.verifier,
        "answer": item.answer,
    }
