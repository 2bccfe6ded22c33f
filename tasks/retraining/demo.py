"""Files of five nights, as a shop would drop them into an inbox: `eachprompt retrain-demo`.

Rows are those of the generated marketplace, so that verifiers and the shipped model know them.
"""

import json
import random
from collections.abc import Mapping
from itertools import islice, pairwise

from data_schemas.rows import Domain
from tasks.curation.marketplace.drawing import DRAWERS, draw_items
from tasks.curation.marketplace.items import MarketItem
from tasks.errors import SettingsError
from tasks.store.interface import store_at

GOOD, DRIFT, POISON, BAD, NOTHING = "good rows", "drift", "a poisoned file", "a bad file", "nothing"
NIGHTS = (GOOD, DRIFT, POISON, BAD, NOTHING)
FIRST = "sample world/0"
"""Seed of the rows that the first release knows."""
NUM_ROWS = 8
"""Per domain and file."""
NUM_QUESTIONS = 40
"""Questions of the night of drift; three quarters of the draws are English."""
MAPPING = """\
name: shop_quiz
domain: choice
language: "{locale}"
prompt: "{question}"
verifier: choice
answer: {correct: "{right}", others: "{wrong}"}
facets: {price: "{price}"}
"""


def drop(night: str, inbox: str) -> list[str]:
    """Write the files of one night into a folder or an s3:// prefix, and return their names.

    Raises:
        SettingsError: there is no such night.
    """
    if night not in NIGHTS:
        raise SettingsError(f"there is no night {night!r}; choose from {', '.join(NIGHTS)}")
    files = _files(night)
    for name, payload in files.items():
        store_at(inbox).write_bytes(payload, name)
    return list(files)


def _files(night: str) -> Mapping[str, bytes]:
    match night:
        case "good rows":
            rows = [
                _row(item, with_solution=True)
                for domain in DRAWERS
                for item in _items(domain, "new")
            ]
            return {"monday.jsonl": _lines(rows)}
        case "drift":
            items = [
                item
                for item in _items(Domain.CHOICE, "later", 8 * NUM_QUESTIONS)
                if item.language != "en"
            ]
            rows = [
                _quiz(item, 500 + 7 * place) for place, item in enumerate(items[:NUM_QUESTIONS])
            ]
            return {"quiz/_mapping.yaml": MAPPING.encode(), "quiz/tuesday.jsonl": _lines(rows)}
        case "a poisoned file":
            # Questions of the first release, each with the answer of the next one.
            questions = _items(Domain.MATHS, FIRST, NUM_QUESTIONS)
            pairs = pairwise(questions)
            rows = [_row(item) | {"answer": other.answer} for item, other in pairs]
            return {"wednesday.jsonl": _lines(rows)}
        case "a bad file":
            whole = _lines([_row(item) for item in _items(Domain.MATHS, "thursday")])
            broken = b"\n".join(line[: len(line) // 2] for line in whole.splitlines())
            return {"thursday.jsonl": broken}
        case _:
            return {}


def _items(domain: Domain, seed: str, count: int = NUM_ROWS) -> list[MarketItem]:
    return list(islice(draw_items(random.Random(seed), domain, problems=True), count))


def _row(item: MarketItem, *, with_solution: bool = False) -> dict[str, object]:
    """A row of `prompt_jsonl`, with the worked solution of a careful teacher on request."""
    row: dict[str, object] = {
        "domain": item.domain.value,
        "language": item.language,
        "prompt": item.prompt,
        "verifier": item.verifier,
        "answer": item.answer,
    }
    return row | ({"response": item.careful} if with_solution else {})


def _quiz(item: MarketItem, price: int) -> dict[str, object]:
    return {
        "locale": item.language,
        "question": item.prompt,
        "right": item.answer["correct"],
        "wrong": item.answer["others"],
        "price": price,
    }


def _lines(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
