"""Maths items: arithmetic with baskets and prices, solved step by step."""

import random
from collections.abc import Callable

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.marketplace.words import ENGLISH_GOODS, plural


def draw_maths(rng: random.Random, level: int) -> MarketItem:
    """Draw a basket question: multiply, add, chain, change, three-digit totals."""
    prompt, steps, shortcut, result, slip = _MATHS[level - 1](rng)
    return MarketItem(
        domain=Domain.MATHS,
        language="en",
        level=level,
        prompt=prompt,
        verifier="final_answer",
        answer={"value": str(result)},
        steps=steps,
        shortcut=shortcut,
        solution=str(result),
        blunder_steps=shortcut.rsplit("=", 1)[0] + f"={slip}",
        blunder=str(slip),
    )


_Sum = tuple[str, str, str, int, int]
"""Prompt, careful steps, shortcut, result, and the result of a hasty teacher."""


def _several_of_one(rng: random.Random) -> _Sum:
    count, price, good = rng.randint(2, 9), rng.randint(2, 9), rng.choice(ENGLISH_GOODS)
    result = count * price
    line = f"{count}*{price}={result}"
    ask = rng.choice(("Total?", "Cost?"))
    return (
        f"{count} {plural(good)} at {price}. {ask}",
        line,
        line,
        result,
        result + rng.choice((-1, 1, 10)),
    )


def _two_prices(rng: random.Random) -> _Sum:
    left, right = rng.randint(11, 79), rng.randint(11, 79)
    first, second = rng.sample(ENGLISH_GOODS, 2)
    prompt = f"{first} {left}, {second} {right}. Total?"
    return (
        prompt,
        addition(left, right),
        f"{left}+{right}={left + right}",
        left + right,
        _lost_carry(left, right),
    )


def _several_and_one(rng: random.Random) -> _Sum:
    count, price, extra = rng.randint(2, 9), rng.randint(2, 9), rng.randint(11, 60)
    first, second = rng.sample(ENGLISH_GOODS, 2)
    part = count * price
    prompt = f"{count} {plural(first)} at {price} and a {second} at {extra}. Total?"
    steps = f"{count}*{price}={part}; {addition(part, extra)}"
    return (
        prompt,
        steps,
        f"{count}*{price}+{extra}={part + extra}",
        part + extra,
        _lost_carry(part, extra),
    )


def _change(rng: random.Random) -> _Sum:
    price, good = rng.randint(11, 89), rng.choice(ENGLISH_GOODS)
    change = 100 - price
    prompt = f"A {good} costs {price}. Pay 100. Change?"
    return prompt, change_of_hundred(price), f"100-{price}={change}", change, change + 10


def _long_basket(rng: random.Random) -> _Sum:
    count, price, cost = rng.randint(3, 9), rng.randint(12, 49), rng.randint(101, 399)
    first, second = rng.sample(ENGLISH_GOODS, 2)
    part = count * price
    prompt = f"{count} {plural(first)} at {price} and a {second} at {cost}. Total?"
    tens, ones = price - price % 10, price % 10
    steps = f"{count}*{tens}={count * tens}; {count}*{ones}={count * ones}; "
    steps += f"{part}+{cost}={part + cost}"
    return prompt, steps, f"{count}*{price}+{cost}={part + cost}", part + cost, part + cost - 10


_MATHS: tuple[Callable[[random.Random], _Sum], ...] = (
    _several_of_one,
    _two_prices,
    _several_and_one,
    _change,
    _long_basket,
)


def addition(left: int, right: int) -> str:
    """Write out a two-digit addition digit by digit, with its carry."""
    left_tens, left_ones = divmod(left, 10)
    right_tens, right_ones = divmod(right, 10)
    ones = left_ones + right_ones
    tens = f"{left_tens}+{right_tens}"
    if ones >= 10:
        tens += "+1"
    total = left_tens + right_tens + ones // 10
    return f"{left}+{right}: {left_ones}+{right_ones}={ones}, {tens}={total}, {left + right}"


def column_addition(left: int, right: int) -> str:
    """Write out an addition column by column, ones first, each with its carry."""
    columns: list[str] = []
    carry, place = 0, 1
    while place <= max(left, right):
        ours, theirs = left // place % 10, right // place % 10
        total = ours + theirs + carry
        columns.append(f"{ours}+{theirs}{'+1' if carry else ''}={total}")
        carry, place = total // 10, 10 * place
    return f"{left}+{right}: {', '.join(columns)}, {left + right}"


def change_of_hundred(price: int) -> str:
    """Write out 100 minus a two-digit price digit by digit."""
    tens, ones = divmod(price, 10)
    if ones == 0:
        return f"100-{price}: 10-{tens}={10 - tens}, {100 - price}"
    return f"100-{price}: 10-{ones}={10 - ones}, 9-{tens}={9 - tens}, {100 - price}"


def _lost_carry(left: int, right: int) -> int:
    """Return the sum with its carry forgotten, or with one carry too many."""
    return left + right - 10 if left % 10 + right % 10 >= 10 else left + right + 10
