"""A generated shop in EComAgentBench's layout, so that the benchmark itself stays held out.

Every customer wants one product. Its kind and colour are in the request, its material in the
profile, its size is told when asked for, and its price and rating have limits. Beside the target
stand products that meet all wishes but one: nobody who leaves a source out can tell them apart.
"""

import random
from collections.abc import Iterator
from typing import Any

GOODS = (
    "backpack",
    "blanket",
    "bottle",
    "cushion",
    "jacket",
    "kettle",
    "lamp",
    "notebook",
    "raincoat",
    "rug",
    "tray",
    "umbrella",
)
COLOURS = ("Black", "Blue", "Green", "Grey", "Red", "White", "Yellow")
MATERIALS = ("Bamboo", "Cotton", "Leather", "Linen", "Steel", "Wool")
SIZES = ("Small", "Medium", "Large", "Extra Large")
STORES = ("Aranya", "Bintang", "Casa Lua", "Dongfang", "Ematech", "Phu Quy")
INTENTS = ("product_search", "coupon_budget")
_DECOYS = ("Color", "Material", "Size", "price")
"""What a product that is not the target differs in."""


def generate(seed: int, customers: int) -> Iterator[dict[str, Any]]:
    """Yield rows, one per customer, each with its products; ids tell nothing of the wishes.

    Args:
        seed: of everything; another one gives another shop.
        customers: number of rows.
    """
    rng = random.Random(seed)
    keys = rng.sample(range(10**6, 10**7), customers * (1 + len(_DECOYS)))
    for number in range(customers):
        own = [f"P{keys.pop()}" for _ in range(1 + len(_DECOYS))]
        yield _row(rng, f"generated-{seed}-{number}", own, number)


def _row(rng: random.Random, name: str, keys: list[str], number: int) -> dict[str, Any]:
    # A good and a colour recur; a number in the title keeps customers' products apart in a search.
    good, series = rng.choice(GOODS), f"{rng.choice(STORES)} {number:03}"
    details = {
        "Color": rng.choice(COLOURS),
        "Material": rng.choice(MATERIALS),
        "Size": rng.choice(SIZES),
    }
    price = rng.randrange(1000, 9000) / 100
    intent = rng.choice(INTENTS)
    face_value = round(price * rng.uniform(0.05, 0.25), 2)
    voucher = {"discount_type": "fixed", "threshold": round(price / 2, 2), "face_value": face_value}
    has_voucher = intent == "coupon_budget"
    limit = round((price - face_value if has_voucher else price) * rng.uniform(1.0, 1.08), 2)
    target = _product(keys[0], series, good, details, price)
    others = [
        _product(key, series, good, *_changed(rng, details, price, differs))
        for key, differs in zip(keys[1:], _DECOYS, strict=True)
    ]
    if has_voucher:
        money = f"I have a coupon of ${face_value:.2f}, and at most ${limit:.2f} to spend with it."
        bound = {"type": "budget_match", "field": "budget", "expected_value": limit}
    else:
        money = f"It may cost ${limit:.2f} at most."
        bound = {"type": "numeric_range", "field": "price", "expected_value": {"max": limit}}
    colour, size = details["Color"].lower(), details["Size"].lower()
    return {
        "id": name,
        "intent_category": intent,
        "user_query": f"I look for a {colour} {good} of the series {series}. {money}",
        "user_persona": {"product_requirements": {"material_need": details["Material"]}},
        "clarification_script": {
            "clarification_slots": [
                {
                    "trigger_keywords": ["size", "how big", "large"],
                    "user_response": f"In {size}, please.",
                }
            ],
            "default_response": "I am not sure. Could you ask for something more specific?",
            "max_clarification_turns": 10,
        },
        "target_product": target,
        "others": others,
        "rubrics": [
            _wish("r1", "query", "entity_match", "title", good),
            _wish("r2", "query", "attribute_match", "details.Color", details["Color"]),
            {"id": "r3", "info_source": "query", **bound},
            _wish("r4", "persona", "attribute_match", "details.Material", details["Material"]),
            _wish("r5", "clarification", "attribute_match", "details.Size", details["Size"]),
        ],
        "voucher": voucher if has_voucher else None,
    }


def _changed(
    rng: random.Random, details: dict[str, str], price: float, differs: str
) -> tuple[dict[str, str], float]:
    if differs == "price":
        return details, round(price * rng.uniform(1.5, 2.0), 2)
    values = {"Color": COLOURS, "Material": MATERIALS, "Size": SIZES}[differs]
    # "Large" is contained in "Extra Large": such a product would meet the wish.
    fitting = [one for one in values if details[differs] not in one]
    return {**details, differs: rng.choice(fitting)}, price


def _product(
    key: str, series: str, good: str, details: dict[str, str], price: float
) -> dict[str, Any]:
    return {
        "product_id": key,
        "title": f"{series} {good}",
        "store": series.rpartition(" ")[0],
        "price": price,
        "details": details,
    }


def _wish(key: str, source: str, kind: str, field: str, expected: str) -> dict[str, Any]:
    return {
        "id": key,
        "info_source": source,
        "type": kind,
        "field": field,
        "expected_value": expected,
    }
