"""The sample house: ads with a hidden house style, and the instructions that teach its rules.

`problems.jsonl` contains bare requests, each with its rubric; `demonstrations.jsonl` contains
the sample world's instructions, in which every rule is written out.
"""

import json
import random
from itertools import islice
from pathlib import Path

from data_schemas.rows import MERGED, Domain
from tasks.curation.adapters.general import problem_or_demonstration
from tasks.curation.adapters.table import Adapter
from tasks.curation.items import Item
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.rows import RawRow
from tasks.lab.recipes.rusca.house_style import draw_requests
from tasks.store.files import write_bytes

SOURCE = f"{__name__}:SAMPLE"
"""Its name in settings."""
PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
DEMONSTRATIONS_PER_PARENT = 700


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    rng = random.Random(f"sample house/{seed}")
    common = {"domain": Domain.INSTRUCTION, "language": "en"}
    problems = [
        common
        | {
            "id": f"p{number:05d}",
            "level": 1,
            "prompt": request.prompt,
            "verifier": "rule_rubric",
            "answer": request.answer,
        }
        for number, request in enumerate(draw_requests(rng))
    ]
    items = draw_items(rng, Domain.INSTRUCTION, problems=False)
    demonstrations = [
        common
        | {
            "id": f"d{number:05d}{parent[0]}",
            "level": item.level,
            "prompt": item.prompt,
            "response": item.careful,
            "parent": parent,
            "verifier": item.verifier,
            "answer": item.answer,
        }
        for parent in MERGED
        for number, item in enumerate(islice(items, DEMONSTRATIONS_PER_PARENT))
    ]
    for name, rows in ((PROBLEMS, problems), (DEMONSTRATIONS, demonstrations)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        write_bytes(folder / name, ("\n".join(lines) + "\n").encode())


def sample_house(row: RawRow) -> list[Item]:
    """Read a row of the generated ads with a hidden house style, as `prompt_jsonl`.

    What a demonstration answers verifies it and is no problem: its rules are not hidden.
    """
    return problem_or_demonstration(row, "sample_house")


SAMPLE = Adapter(
    sample_house, ("domain", "language", "prompt"), (PROBLEMS, DEMONSTRATIONS), generate
)
