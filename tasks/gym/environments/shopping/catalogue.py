"""The shop's products with their search, and its customers.

Rows have EComAgentBench's layout, one JSON object per line: `id`, `user_query`, `user_persona`,
`clarification_script`, `target_product`, `rubrics`, `voucher`, `intent_category`. The catalogue are
the targets of all rows: a closed shop, in which every episode can be played without its 25 GB of
products, and is easier than there (arXiv 2606.17698).
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.gym.environments.shopping.wishes import Product, Wish, words

PAGE = 20
"""Products on a page of results."""


@dataclass(frozen=True)
class Slot:
    """Something that the customer tells when asked about it."""

    keywords: tuple[str, ...]
    reply: str


@dataclass(frozen=True)
class Customer:
    """A customer who looks for one product."""

    id: str
    intent: str
    query: str
    profile: Mapping[str, Any]
    slots: tuple[Slot, ...]
    default_reply: str
    max_questions: int
    target: Product
    wishes: tuple[Wish, ...]
    voucher: Mapping[str, Any] | None

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> "Customer":
        """Read a row.

        Raises:
            KeyError, TypeError, ValueError: it has another layout.
        """
        script = row.get("clarification_script") or {}
        return cls(
            id=str(row["id"]),
            intent=str(row["intent_category"]),
            query=str(row["user_query"]),
            profile=row.get("user_persona") or {},
            slots=tuple(
                Slot(tuple(map(str, slot["trigger_keywords"])), str(slot["user_response"]))
                for slot in script.get("clarification_slots", ())
            ),
            default_reply=str(script.get("default_response", "I cannot say.")),
            max_questions=int(script.get("max_clarification_turns", 10)),
            target=Product.parse(row["target_product"]),
            wishes=tuple(map(Wish.parse, row["rubrics"])),
            voucher=row.get("voucher"),
        )


class Shop:
    """The products of a set of rows, searched by title, and the customers.

    Raises:
        ValueError: there is no row.
        KeyError, TypeError, ValueError: a row has another layout; the message names its line.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.customers: dict[str, Customer] = {}
        digest = hashlib.sha256()
        products: dict[str, Product] = {}
        for line, row in enumerate(rows, 1):
            if row.get("sample_status", "ok") != "ok":
                continue
            try:
                customer = Customer.parse(row)
                products |= {
                    one.product_id: one for one in map(Product.parse, row.get("others", ()))
                }
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"line {line}: {type(error).__name__} {error}") from error
            self.customers[customer.id] = customer
            products[customer.target.product_id] = customer.target
            digest.update(json.dumps(row, sort_keys=True).encode())
        if not self.customers:
            raise ValueError("no row")
        self.digest = digest.hexdigest()[:16]
        self.products = dict(sorted(products.items()))
        self._index = sqlite3.connect(":memory:")
        self._index.execute("CREATE VIRTUAL TABLE titles USING fts5(id UNINDEXED, title)")
        self._index.executemany(
            "INSERT INTO titles VALUES (?, ?)",
            [(key, product.title) for key, product in self.products.items()],
        )

    def search(self, query: str) -> list[Product]:
        """Return the products whose title has all words of a query, by BM25, then by id."""
        phrases = " ".join(f'"{word}"' for word in words(query))
        if not phrases:
            return []
        matches = self._index.execute(
            "SELECT id FROM titles WHERE titles MATCH ? ORDER BY bm25(titles), id", (phrases,)
        )
        return [self.products[key] for (key,) in matches]

    def of_store(self, store: str) -> list[Product]:
        """Return the products of a store, by id."""
        return [product for product in self.products.values() if product.store == store]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a file of rows.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is no JSON.
    """
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def listed(products: Sequence[Product], page: int) -> list[dict[str, str]]:
    """Return a page of products, as the tools show them."""
    start = max(0, page) * PAGE
    return [
        {"product_id": product.product_id, "title": product.title}
        for product in products[start : start + PAGE]
    ]
