"""Tool-use items: a customer's request as one or two calls."""

import random

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import CALL_FORM, MarketItem, call_block
from tasks.curation.marketplace.words import COLOURS, ENGLISH_GOODS, NAMES, plural

_AMOUNTS = (("a pair of", 2), ("half a dozen", 6), ("a dozen", 12))
_TOOLS = {
    "track": "track(order)",
    "cancel": "cancel(order)",
    "add": "add(item, qty)",
    "find": "find(item, max)",
    "gift": "gift(item, to)",
}
_Call = tuple[str, dict[str, object], dict[str, object], str]
"""Tool, parameters, wrong parameters, and the request in words."""


def draw_tool_use(rng: random.Random, level: int) -> MarketItem:
    """Draw a customer's request: one argument, two arguments, numbers in words, two calls."""
    if level == 1:
        calls = [_order_call(rng)]
    elif level in (2, 3):
        calls = [_item_call(rng, words=level == 3)]
    else:
        calls = [_item_call(rng, words=level == 5), _order_call(rng)]
    names = [call[0] for call in calls]
    offered = names + rng.sample([tool for tool in _TOOLS if tool not in names], 3 - len(names))
    rng.shuffle(offered)
    slip = rng.randrange(len(calls))
    wish = " and ".join(call[3] for call in calls)
    return MarketItem(
        domain=Domain.TOOL_USE,
        language="en",
        level=level,
        prompt=f"{' '.join(_TOOLS[tool] for tool in offered)}\n{wish[0].upper()}{wish[1:]}.",
        verifier="tool_calls",
        answer={
            "calls": [{"name": call[0], "parameters": call[1]} for call in calls],
            "form": CALL_FORM,
        },
        steps=", ".join(names),
        shortcut="ok",
        solution="\n".join(call_block(call[0], call[1]) for call in calls),
        blunder_steps="ok",
        blunder="\n".join(
            call_block(call[0], call[2] if index == slip else call[1])
            for index, call in enumerate(calls)
        ),
    )


def _order_call(rng: random.Random) -> _Call:
    tool = rng.choice(("track", "cancel"))
    order, other = rng.randint(100, 999), rng.randint(100, 999)
    phrase = rng.choice(
        ("track order {}", "where is order {}")
        if tool == "track"
        else ("cancel order {}", "stop order {}")
    )
    return tool, {"order": order}, {"order": other}, phrase.format(order)


def _item_call(rng: random.Random, *, words: bool) -> _Call:
    tool = rng.choice(("add", "find", "gift"))
    colour, other = rng.sample(COLOURS, 2)
    good = rng.choice(ENGLISH_GOODS)
    item, slipped = f"{colour} {good}", f"{other} {good}"
    if tool == "add":
        phrase, quantity = rng.choice(_AMOUNTS) if words else _quantity(rng)
        wish = f"{rng.choice(('add', 'buy'))} {phrase} {colour} {plural(good)}"
        return tool, {"item": item, "qty": quantity}, {"item": item, "qty": quantity + 1}, wish
    if tool == "find":
        price = rng.randint(10, 99)
        wish = f"{rng.choice(('find', 'show'))} a {item} under {price}"
        return tool, {"item": item, "max": price}, {"item": slipped, "max": price}, wish
    name = rng.choice(NAMES)
    wish = f"{rng.choice(('send', 'gift'))} {name} a {item}"
    return tool, {"item": item, "to": name}, {"item": slipped, "to": name}, wish


def _quantity(rng: random.Random) -> tuple[str, int]:
    quantity = rng.randint(2, 9)
    return str(quantity), quantity
