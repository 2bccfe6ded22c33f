"""General questions: the odd one out, and what is of the same kind; knowledge of categories."""

import random

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.marketplace.words import CATEGORIES, ENGLISH


def draw_general(rng: random.Random, level: int) -> MarketItem:
    """Draw a question on goods: the odd one up to level 2, the same kind above; more options."""
    kind, other = rng.sample(range(len(CATEGORIES)), 2)
    goods = rng.sample(ENGLISH.goods[kind], 3)
    odd = rng.choice(ENGLISH.goods[other])
    if level < 3:
        options = [*goods[: level + 1], odd]
        right, wrong = odd, goods[0]
        rng.shuffle(options)
        ask, facts = "Odd one?", [_fact(good) for good in options]
    else:
        first, right, _ = goods
        wrong = odd
        unlike = [good for good in _CATEGORY if good not in (*goods, odd)]
        options = [right, wrong, *rng.sample(unlike, level - 3)]
        rng.shuffle(options)
        ask, facts = f"Same kind as {first}?", [_fact(first), _fact(right)]
    return MarketItem(
        domain=Domain.GENERAL,
        language=ENGLISH.tag,
        level=level,
        prompt=f"{ask} {', '.join(options)}",
        verifier="choice",
        answer={"correct": [right], "others": [[good] for good in options if good != right]},
        steps="; ".join(facts),
        shortcut=_fact(right),
        solution=right,
        blunder_steps=_fact(wrong),
        blunder=wrong,
    )


_CATEGORY = {
    good: category
    for category, goods in zip(CATEGORIES, ENGLISH.goods, strict=True)
    for good in goods
}


def _fact(good: str) -> str:
    return f"{good}: {_CATEGORY[good]}"
