"""Offer lists, and questions about several of them: the documents of a self-play.

    A: Nara7, Kibo4                  a list: a shop, and what it asks for two brands
    Nara + Zeta                      numeric: a sum of prices
    Cheapest of A, B                 free: a brand
    Dearest: Nara, Kibo, Zeta        choice: one of two to four brands

Brands and prices of a cluster are all different, so that every question has one answer. What a
question needs are its operations: offers that are added or compared, or lists that are searched.
Prices have one digit and follow their brand at once: what a model of three layers can look up.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from tasks.curation.marketplace.words import BRANDS

SHOPS = "ABCD"
OFFERS = 2
"""Offers in one list."""
PRICES = range(2, 10)
MOST_OPERATIONS = 4
"""Largest number of steps of a drawn question."""
_OFFER = re.compile(r"(\D+)(\d+)")
_EXTREME = re.compile(r"(Cheapest|Dearest)(?: of ([A-Z](?:, [A-Z])*)|: (\w+(?:, \w+)*))")


class Task(StrEnum):
    """Kinds of questions, which are asked equally often."""

    NUMERIC = "numeric"
    FREE = "free"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class OfferList:
    shop: str
    offers: tuple[tuple[str, int], ...]

    @classmethod
    def read(cls, line: str) -> Self:
        """Read a line that `text` wrote."""
        shop, _, offers = line.partition(": ")
        result = map(_OFFER.fullmatch, offers.split(", "))
        return cls(shop, tuple((offer[1], int(offer[2])) for offer in result if offer))

    @property
    def text(self) -> str:
        """One line."""
        return f"{self.shop}: {', '.join(_offer_text(offer) for offer in self.offers)}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer and the steps to it."""

    text: str
    answer: str
    steps: str
    operations: int


def draw_cluster(rng: random.Random) -> tuple[OfferList, ...]:
    """Draw the lists of all shops."""
    count = OFFERS * len(SHOPS)
    offers = list(zip(rng.sample(BRANDS, count), rng.sample(PRICES, count), strict=True))
    return tuple(
        OfferList(shop, tuple(offers[place * OFFERS : (place + 1) * OFFERS]))
        for place, shop in enumerate(SHOPS)
    )


def draw_question(
    rng: random.Random, task: Task, lists: Sequence[OfferList], operations: int
) -> Question:
    """Draw a question about some lists.

    Args:
        rng: the only source of randomness.
        task: its kind.
        lists: what it is about.
        operations: wanted; fewer if the lists do not have as much, two at least for a choice.
    """
    brands = [brand for one in lists for brand, _ in one.offers]
    extreme = rng.choice(("Cheapest", "Dearest"))
    match task:
        case Task.NUMERIC:
            text = " + ".join(rng.sample(brands, min(operations, len(brands))))
        case Task.FREE:
            subset = rng.sample(lists, min(operations, len(lists)))
            text = f"{extreme} of {', '.join(one.shop for one in subset)}"
        case Task.CHOICE:
            count = min(max(2, operations), len(brands))
            text = f"{extreme}: {', '.join(rng.sample(brands, count))}"
    result = answer(text, lists)
    assert result is not None
    return result


def answer(text: str, lists: Sequence[OfferList]) -> Question | None:
    """Work a question out; None if it is no question about these lists."""
    prices = {brand: price for one in lists for brand, price in one.offers}
    match = _EXTREME.fullmatch(text)
    if match is None:
        terms = text.split(" + ")
        return _sum(text, [(one, prices[one]) for one in terms]) if {*terms} <= {*prices} else None
    shops, brands = ((part or "").split(", ") if part else [] for part in (match[2], match[3]))
    by_shop = {one.shop: one.offers for one in lists}
    if len({*shops, *brands}) < len(shops) + len(brands):
        return None
    if not ({*shops} <= {*by_shop} and {*brands} <= {*prices}):
        return None
    offers = [offer for shop in shops for offer in by_shop[shop]]
    offers += [(brand, prices[brand]) for brand in brands]
    pick = min if match[1] == "Cheapest" else max
    best = pick(offers, key=lambda offer: offer[1])
    steps = f"{' '.join(map(_offer_text, offers))}; {_offer_text(best)}"
    return Question(text, best[0], steps, len(shops) + len(brands))


def _sum(text: str, offers: Sequence[tuple[str, int]]) -> Question:
    steps, total = [" ".join(map(_offer_text, offers))], offers[0][1]
    for _, price in offers[1:]:
        steps.append(f"{total}+{price}={total + price}")
        total += price
    return Question(text, str(total), "; ".join(steps), len(offers))


def _offer_text(offer: tuple[str, int]) -> str:
    brand, price = offer
    return f"{brand}{price}"
