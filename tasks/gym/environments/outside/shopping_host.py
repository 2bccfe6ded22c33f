"""Purchases of a shop, played as an outside environment.

    python -m tasks.gym.environments.outside.shopping_host generated '{"seed": 1}'
    python -m tasks.gym.environments.outside.shopping_host NAME '{}' FILE

`generated` needs no file; another name is a file of rows in EComAgentBench's layout, whose place
EACHPROMPT_ENVIRONMENTS says. The reward is 1 for the target, or for a product that meets all
wishes, else 0; where a wish is an opinion of reviewers and all others are met, there is none.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.gym.environments.outside.hosting import Step, Turn, serve
from tasks.gym.environments.shopping.catalogue import Customer, Shop, read_rows
from tasks.gym.environments.shopping.purchase import RULES, TOOLS, Purchase
from tasks.gym.environments.shopping.world import generate

CUSTOMERS = 1000
"""Customers of a generated shop, whatever the number that a row asks for."""


class ShoppingHost:
    """The customers of one shop."""

    def __init__(self, name: str, arguments: Mapping[str, Any], file: Path | None = None) -> None:
        rows = (
            generate(int(arguments.get("seed", 0)), CUSTOMERS) if file is None else read_rows(file)
        )
        self.shop = Shop(rows)
        self.version = f"shopping 1 {name} {self.shop.digest}"

    def offer(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List the first customers."""
        customers = list(self.shop.customers.values())[: request["limit"]]
        return [
            {
                "task": {"customer": customer.id},
                "messages": [
                    {"role": "system", "content": RULES},
                    {"role": "user", "content": customer.query},
                ],
                "tools": TOOLS,
            }
            for customer in customers
        ]

    def begin(self, task: Mapping[str, Any]) -> "_Episode":
        """Open a purchase."""
        return _Episode(self.shop, self.shop.customers[task["customer"]])


class _Episode:
    def __init__(self, shop: Shop, customer: Customer) -> None:
        self._purchase = Purchase(shop, customer)

    def step(self, turn: Turn) -> Step:
        messages = self._purchase.answer(turn.calls)
        if messages:
            return Step(messages)
        right = self._purchase.result().is_right
        return Step(done=True, reward=None if right is None else float(right))

    def close(self) -> None:
        """Nothing to give back."""


def _start() -> ShoppingHost:
    name, arguments, *place = sys.argv[1:]
    return ShoppingHost(name, json.loads(arguments), Path(place[0]) if place else None)


if __name__ == "__main__":
    serve(_start)
