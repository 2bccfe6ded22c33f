"""Generated suites of e-commerce tasks in eight languages, one suite per task.

They stand in for tasks of EcomEval (arXiv 2510.20632), whose data is not public. No seed changes
them, so that models of different runs answer the same problems.
"""

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tasks.curation.adapters.general import prompt_jsonl
from tasks.curation.items import Item
from tasks.curation.marketplace.ecommerce.cases import TASKS, draw_case
from tasks.curation.rows import RawRow
from tasks.store.files import write_bytes

FILE = "problems.jsonl"
NUM_CASES = 30
"""Per task; each is asked in eight languages."""
NAMES = {f"generated_{task}": task for task in TASKS}
"""Task by source."""


def generate(source: str, seed: int, folder: Path) -> None:
    """Write the problems of a source; no seed changes them, and no case is drawn twice."""
    del seed
    rng = random.Random(source)
    lines: list[str] = []
    prompts: set[str] = set()
    case = 0
    while case < NUM_CASES:
        items = draw_case(NAMES[source], rng)
        if not prompts.isdisjoint(item.prompt for item in items):
            continue
        prompts.update(item.prompt for item in items)
        case += 1
        lines += [
            json.dumps(
                {
                    "id": f"{item.language}-{case}",
                    "domain": item.domain,
                    "language": item.language,
                    "prompt": item.prompt,
                    "verifier": item.verifier,
                    "answer": item.answer,
                },
                ensure_ascii=False,
            )
            for item in items
        ]
    write_bytes(folder / FILE, ("\n".join(lines) + "\n").encode())


def _reader(source: str) -> Callable[[RawRow], list[Item]]:
    def read(row: RawRow) -> list[Item]:
        return prompt_jsonl(row, source)

    read.__doc__ = f"Read a generated e-commerce task in eight languages: {NAMES[source]}."
    return read


READERS = {source: _reader(source) for source in NAMES}
GENERATORS = {source: partial(generate, source) for source in NAMES}
