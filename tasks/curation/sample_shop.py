"""The sample shop: generated customer service cases, which take several turns to handle.

`problems.jsonl` contains cases with the shop's records to check against; `demonstrations.jsonl`
contains other cases with the turns of a clerk, who in one of four cases ignores the status of an
order. Wrong ones are not marked: the adapter plays every case and refuses them.

Problems and demonstrations share no customer for any seed, and no customer has two cases.
"""

import json
import random
from itertools import islice
from pathlib import Path

from data_schemas.rows import MERGED, Domain, Parent, Role
from tasks.curation.marketplace.shop import POLICY, TOOLS, ShopRequest, draw_cases
from tasks.store.files import write_bytes

PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
NUM_PROBLEMS = 600
DEMONSTRATIONS_PER_PARENT = 400
_CARELESS_SHARE = 0.25


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    rng = random.Random(f"sample shop/{seed}")
    problems = [_row(case) for case in islice(draw_cases(rng, problems=True), NUM_PROBLEMS)]
    cases = draw_cases(rng, problems=False)
    demonstrations = [
        _row(case) | _demonstration_fields(rng, case, parent)
        for parent in MERGED
        for case in islice(cases, DEMONSTRATIONS_PER_PARENT)
    ]
    _write(folder / PROBLEMS, "p", problems)
    _write(folder / DEMONSTRATIONS, "d", demonstrations)


def _row(case: ShopRequest) -> dict[str, object]:
    return {
        "domain": Domain.TOOL_USE,
        "language": "en",
        "level": case.level,
        "messages": [
            {"role": Role.SYSTEM, "content": POLICY},
            {"role": Role.USER, "content": f"{TOOLS}\n{case.request}"},
        ],
        "verifier": "shop",
        "answer": case.answer,
    }


def _demonstration_fields(
    rng: random.Random, case: ShopRequest, parent: Parent
) -> dict[str, object]:
    careful = rng.random() >= _CARELESS_SHARE
    return {"parent": parent, "turns": case.clerk(careful=careful)}


def _write(path: Path, prefix: str, rows: list[dict[str, object]]) -> None:
    lines = [
        json.dumps({"id": f"{prefix}{number:05d}", **row}, ensure_ascii=False)
        for number, row in enumerate(rows)
    ]
    write_bytes(path, ("\n".join(lines) + "\n").encode())
