"""Purchases with hidden wishes: what a customer wants, the shop's offers, and how a clerk buys.

The request names a good and a limit. The colour is in the customer's profile, the material is told
when asked for, and every offer but one misses a wish: nobody who leaves a source out can tell them
apart. The shape of EComAgentBench (arXiv 2606.17698), at the size of a tiny model; the tools are
those of `tasks.gym.environments.shop`.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

from tasks.curation.marketplace.items import CALL_FORM, call_block, is_problem_prompt, respond
from tasks.curation.marketplace.words import COLOURS, ENGLISH_GOODS, MATERIALS

POLICY = "profile: colour, ask: material"
"""The system message of every purchase: where a wish is found."""
TOOLS = "profile(customer) ask(about) offers(item) buy(offer)"
"""In front of the request, as `tasks.curation.marketplace.shop` writes its own."""
BUYERS = range(10_000, 30_000)
"""Customers with a wish: none of them is one of the service cases."""
MISSED = {1: ("colour",), 2: ("material",), 3: ("price",), 4: ("colour", "material")}
MISSED[5] = ("colour", "material", "price")
"""What the offers beside the right one miss, by level."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A product on sale."""

    number: int
    colour: str
    material: str
    price: int


@dataclass(frozen=True, slots=True)
class HiddenWish:
    """A customer's request, what else the customer wants, and the offers."""

    level: int
    """1 = easiest."""
    customer: int
    good: str
    limit: int
    """The highest price."""
    colour: str
    material: str
    offers: tuple[Offer, ...]
    """In the order in which the shop lists them."""

    @property
    def request(self) -> str:
        """What the customer says at first."""
        return f"Customer {self.customer} wants a {self.good} for {self.limit} at most."

    @property
    def right(self) -> Offer:
        """The only offer that meets all wishes."""
        (found,) = (
            one
            for one in self.offers
            if (one.colour, one.material) == (self.colour, self.material)
            and one.price <= self.limit
        )
        return found

    @property
    def answer(self) -> dict[str, object]:
        """The gold of the verifier `shop`: offers, profile, replies, and what to buy."""
        return {
            "orders": [],
            "offers": [
                [one.number, self.good, f"{one.colour} {one.material}", one.price]
                for one in self.offers
            ],
            "profiles": {str(self.customer): self.colour},
            "replies": {"material": self.material},
            "goal": {str(self.right.number): "buy"},
            "say": "done",
            "form": CALL_FORM,
        }

    def clerk(self, *, careful: bool) -> list[str]:
        """The turns of a clerk; one who is not careful buys the first offer below the limit."""
        offers = call_block("offers", {"item": self.good})
        if not careful:
            first = next(one for one in self.offers if one.price <= self.limit)
            return [respond(self.good, offers), *_bought("first", first.number)]
        gathered = [
            call_block("profile", {"customer": self.customer}),
            call_block("ask", {"about": "material"}),
            offers,
        ]
        note = f"{self.colour} {self.material} {self.limit}: {self.right.number}"
        return [
            respond(f"wishes of {self.customer}", "\n".join(gathered)),
            *_bought(note, self.right.number),
        ]


def draw_wishes(rng: random.Random, *, problems: bool) -> Iterator[HiddenWish]:
    """Yield wishes, levels in turn, each of another customer, until there are no more customers.

    Args:
        rng: the only source of randomness.
        problems: True for customers of problems, False for those of teaching material: a number
            belongs to one of them, whatever the seed.
    """
    buyers = [one for one in BUYERS if is_problem_prompt(f"customer {one}") == problems]
    rng.shuffle(buyers)
    for customer, level in zip(buyers, cycle(MISSED), strict=False):
        yield _draw(rng, level, customer)


def _draw(rng: random.Random, level: int, customer: int) -> HiddenWish:
    limit = rng.randint(20, 60)
    colour, other_colour = rng.sample(COLOURS, 2)
    material, other_material = rng.sample(MATERIALS, 2)

    def priced(*, fits: bool) -> int:
        return rng.randint(10, limit) if fits else rng.randint(limit + 1, limit + 30)

    kinds = [(colour, material, priced(fits=True))]
    for missed in MISSED[level]:
        kinds.append(
            (
                other_colour if missed == "colour" else colour,
                other_material if missed == "material" else material,
                priced(fits=missed != "price"),
            )
        )
    rng.shuffle(kinds)
    numbers = rng.sample(range(100, 1000), len(kinds))
    return HiddenWish(
        level=level,
        customer=customer,
        good=rng.choice(ENGLISH_GOODS),
        limit=limit,
        colour=colour,
        material=material,
        offers=tuple(Offer(number, *kind) for number, kind in zip(numbers, kinds, strict=True)),
    )


def _bought(note: str, number: int) -> list[str]:
    return [respond(note, call_block("buy", {"offer": number})), respond("", "done")]
