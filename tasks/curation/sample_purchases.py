"""Generated purchases whose wishes have to be gathered: EComAgentBench's shape without its rows.

`problems.jsonl` has customers of one shop, `demonstrations.jsonl` those of another, each with the
calls of a careful shopper. Nothing of the two shops is shared but the words.
"""

import json
from pathlib import Path

from data_schemas.rows import MERGED, Domain
from tasks.curation.adapters.environments import opening_of
from tasks.gym.environments.outside.play import GENERATED
from tasks.gym.environments.outside.shopping_host import ShoppingHost
from tasks.gym.environments.shopping.catalogue import Customer
from tasks.gym.environments.shopping.purchase import RULES, TOOLS
from tasks.gym.environments.shopping.shoppers import buy, careful
from tasks.store.files import write_bytes

PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
NUM_PROBLEMS = 400
DEMONSTRATIONS_PER_PARENT = 100


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    shop = ShoppingHost(GENERATED, {"seed": 2 * seed})
    customers = list(shop.shop.customers.values())[:NUM_PROBLEMS]
    _write(folder / PROBLEMS, [_row(shop, 2 * seed, customer) for customer in customers])
    shop = ShoppingHost(GENERATED, {"seed": 2 * seed + 1})
    customers = list(shop.shop.customers.values())
    rows = [
        _row(shop, 2 * seed + 1, customer) | {"parent": parent, "turns": _turns(shop, customer)}
        for place, parent in enumerate(MERGED)
        for customer in customers[place * DEMONSTRATIONS_PER_PARENT :][:DEMONSTRATIONS_PER_PARENT]
    ]
    _write(folder / DEMONSTRATIONS, rows)


def _row(host: ShoppingHost, seed: int, customer: Customer) -> dict[str, object]:
    task = {
        "messages": [
            {"role": "system", "content": RULES},
            {"role": "user", "content": customer.query},
        ],
        "tools": TOOLS,
    }
    messages = opening_of(task, "", "shopping")
    return {
        "id": customer.id,
        "domain": Domain.TOOL_USE,
        "language": "en",
        "messages": [message.model_dump(mode="json") for message in messages],
        "answer": {
            "library": "shopping",
            "environment": GENERATED,
            "arguments": {"seed": seed},
            "version": host.version,
            "task": {"customer": customer.id},
        },
    }


def _turns(host: ShoppingHost, customer: Customer) -> list[str]:
    _, calls = buy(host.shop, customer, careful)
    return [f"<think>{call['name']}</think>{json.dumps(call)}" for call in calls]


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    write_bytes(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
