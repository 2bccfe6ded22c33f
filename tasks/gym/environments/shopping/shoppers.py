"""Scripted shoppers: what a policy is compared with on the generated shop.

    python -m tasks.gym.environments.shopping.shoppers 7 200

prints their metrics on 200 customers of the shop of seed 7. `careful` gathers the wishes from all
three sources and buys what meets them: the ceiling. `hasty` buys the first result of its search,
and `reader` looks at the products with the request alone.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from tasks.gym.environments.shopping.catalogue import Customer, Shop
from tasks.gym.environments.shopping.metrics import metrics
from tasks.gym.environments.shopping.purchase import Purchase, Result
from tasks.gym.environments.shopping.wishes import price_after
from tasks.gym.environments.shopping.world import COLOURS, SIZES, generate

Call = dict[str, Any]
Shopper = Callable[[str], Generator[Call, dict[str, Any], None]]
"""Is given the request, yields calls and is sent what the tools answer."""


def hasty(request: str) -> Generator[Call, dict[str, Any], None]:
    """Buy the first result."""
    found = yield _search(request)
    yield _recommend(found["products"][0]["product_id"])


def reader(request: str) -> Generator[Call, dict[str, Any], None]:
    """Buy the first result that has the colour and the price of the request."""
    products = yield from _look(request)
    yield _recommend(_first(products, request, [_colour(request)]))


def careful(request: str) -> Generator[Call, dict[str, Any], None]:
    """Buy what meets the request, the profile and the answer to a question."""
    profile = yield {"name": "get_user_profile", "parameters": {}}
    asked = yield {"name": "ask_user", "parameters": {"question": "Which size?"}}
    material = profile["profile"]["product_requirements"]["material_need"]
    # The longest first: "extra large" contains "large".
    size = next(
        one for one in sorted(SIZES, key=len, reverse=True) if one.lower() in asked["user_response"]
    )
    products = yield from _look(request)
    yield _recommend(_first(products, request, [_colour(request), material, size]))


SHOPPERS: dict[str, Shopper] = {"hasty": hasty, "reader": reader, "careful": careful}


def buy(shop: Shop, customer: Customer, shopper: Shopper) -> tuple[Result, list[Call]]:
    """Let a shopper buy for a customer; return how it ended and the calls that it made."""
    purchase, script = Purchase(shop, customer), shopper(customer.query)
    calls = [next(script)]
    while messages := purchase.answer(calls[-1:]):
        calls.append(script.send(json.loads(messages[0]["content"])))
    return purchase.result(), calls


def _look(request: str) -> Generator[Call, dict[str, Any], list[dict[str, Any]]]:
    found = yield _search(request)
    products = []
    for one in found["products"]:
        reply = yield {
            "name": "get_product_details",
            "parameters": {"product_id": one["product_id"]},
        }
        products.append(reply["product"])
    return products


def _search(request: str) -> Call:
    series = re.search(r"series ([\w ]+ \d+)", request)
    assert series is not None
    return {"name": "search_products", "parameters": {"query": series[1]}}


def _recommend(product_id: str) -> Call:
    parameters = {"product_id": product_id, "reasoning": "meets the wishes"}
    return {"name": "recommend_product", "parameters": parameters}


def _colour(request: str) -> str:
    return next(one for one in COLOURS if one.lower() in request)


def _first(products: Sequence[dict[str, Any]], request: str, values: Iterable[str]) -> str:
    amounts = [float(text) for text in re.findall(r"\$(\d+\.\d\d)", request)]
    coupon = {"face_value": amounts[0]} if len(amounts) > 1 else None
    for product in products:
        affordable = price_after(product["price"], coupon) <= amounts[-1]
        if affordable and set(values) <= set(product["details"].values()):
            return product["product_id"]
    return products[0]["product_id"]


def main(arguments: Sequence[str]) -> None:
    """Print the metrics of every shopper on a generated shop."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seed", type=int, help="of the shop")
    parser.add_argument("customers", type=int, choices=range(1, 1000), metavar="customers")
    chosen = parser.parse_args(arguments)
    shop = Shop(generate(chosen.seed, chosen.customers))
    for name, shopper in SHOPPERS.items():
        results = [buy(shop, customer, shopper)[0] for customer in shop.customers.values()]
        sys.stdout.write(f"{name} {json.dumps(metrics(results))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
