"""The sample shop: generated customer service cases and purchases, which take several turns.

`problems.jsonl` contains cases with the shop's records to check against; `demonstrations.jsonl`
contains other cases with the turns of a clerk, who in one of four cases ignores the status of an
order, or buys without asking. Wrong ones are not marked: the adapter plays every case and refuses
them. Service cases are the source `sample_shop`, purchases with hidden wishes `sample_wishes`.

Problems and demonstrations share no customer for any seed, and no customer has two cases.
"""

import json
import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from data_schemas.rows import MERGED, Domain, Parent, Role
from tasks.curation.marketplace import shop, wishes
from tasks.curation.marketplace.shop import ShopRequest
from tasks.curation.marketplace.wishes import HiddenWish
from tasks.store.files import write_bytes

SHOP, WISHES = "sample_shop", "sample_wishes"
PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
NUM_PROBLEMS = 600
DEMONSTRATIONS_PER_PARENT = 400
_CARELESS_SHARE = 0.25


def generate(source: str, seed: int, folder: Path) -> None:
    """Write both files of a source; the same seed gives the same bytes."""
    rng = random.Random(f"{source.replace('_', ' ')}/{seed}")
    problems = [_row(case) for case in islice(_draw(source, rng, problems=True), NUM_PROBLEMS)]
    cases = _draw(source, rng, problems=False)
    demonstrations = [
        _row(case) | _demonstration_fields(rng, case, parent)
        for parent in MERGED
        for case in islice(cases, DEMONSTRATIONS_PER_PARENT)
    ]
    _write(folder / PROBLEMS, "p", problems)
    _write(folder / DEMONSTRATIONS, "d", demonstrations)


GENERATORS = {source: partial(generate, source) for source in (SHOP, WISHES)}


def _draw(source: str, rng: random.Random, *, problems: bool) -> Iterator[ShopRequest | HiddenWish]:
    draw = shop.draw_cases if source == SHOP else wishes.draw_wishes
    return draw(rng, problems=problems)


def _row(case: ShopRequest | HiddenWish) -> dict[str, object]:
    kind = wishes if isinstance(case, HiddenWish) else shop
    return {
        "domain": Domain.TOOL_USE,
        "language": "en",
        "level": case.level,
        "messages": [
            {"role": Role.SYSTEM, "content": kind.POLICY},
            {"role": Role.USER, "content": f"{kind.TOOLS}\n{case.request}"},
        ],
        "verifier": "shop",
        "answer": case.answer,
    }


def _demonstration_fields(
    rng: random.Random, case: ShopRequest | HiddenWish, parent: Parent
) -> dict[str, object]:
    careful = rng.random() >= _CARELESS_SHARE
    return {"parent": parent, "turns": case.clerk(careful=careful)}


def _write(path: Path, prefix: str, rows: list[dict[str, object]]) -> None:
    lines = [
        json.dumps({"id": f"{prefix}{number:05d}", **row}, ensure_ascii=False)
        for number, row in enumerate(rows)
    ]
    write_bytes(path, ("\n".join(lines) + "\n").encode())
