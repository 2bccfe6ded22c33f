"""Customer service cases: what a customer wants, the shop's orders, and how a clerk handles it.

The clerk sees the request only. Which order it is about and what may be done with it is in the
shop's records, which tools read and change (`tasks.gym.environments.shop`); so a case takes
several turns. After the retail domain of tau-bench (arXiv 2406.12045), at the size of a tiny model.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

from tasks.curation.marketplace.items import CALL_FORM, call_block, is_problem_prompt, respond
from tasks.curation.marketplace.words import COLOURS, ENGLISH_GOODS

ACTIONS = {"new": "cancel", "home": "refund", "sent": ""}
"""What the shop's policy allows for an order that the customer no longer wants, by its status."""
LEVELS = (1, 2, 3, 4, 5)
CUSTOMERS = range(1000, 10_000)
POLICY = "new: cancel, home: refund, sent: wait"
"""The system message of every case."""
TOOLS = "orders(customer) cancel(order) refund(order)"
"""As the chat template of the shipped base lists them: in front of the request."""


@dataclass(frozen=True, slots=True)
class Order:
    """A line of the shop's records."""

    number: int
    customer: int
    item: str
    status: str


@dataclass(frozen=True, slots=True)
class ShopRequest:
    """A customer's request with the records behind it."""

    level: int
    """1 = easiest."""
    request: str
    orders: tuple[Order, ...]
    wishes: tuple[int, ...]
    """Numbers of the orders that the customer no longer wants."""

    @property
    def goal(self) -> dict[str, str]:
        """The right action on every order that must change, by its number."""
        status = {order.number: order.status for order in self.orders}
        actions = {str(number): ACTIONS[status[number]] for number in self.wishes}
        return {number: action for number, action in actions.items() if action}

    @property
    def answer(self) -> dict[str, object]:
        """The gold of the verifier `shop`: the records, the goal and what to tell the customer."""
        orders = [[one.number, one.customer, one.item, one.status] for one in self.orders]
        return {"orders": orders, "goal": self.goal, "say": self._say, "form": CALL_FORM}

    def clerk(self, *, careful: bool) -> list[str]:
        """The turns of a clerk; one who is not careful cancels whatever the status is."""
        mine = [order for order in self.orders if order.number in self.wishes]
        customer = mine[0].customer
        turns = [respond(f"orders of {customer}", call_block("orders", {"customer": customer}))]
        actions = [ACTIONS[order.status] if careful else "cancel" for order in mine]
        observation = ", ".join(f"{order.number} {order.status}" for order in mine)
        calls = [
            call_block(action, {"order": order.number})
            for order, action in zip(mine, actions, strict=True)
            if action
        ]
        if calls:
            turns.append(respond(observation if careful else "cancel", "\n".join(calls)))
        return [*turns, respond("" if calls else observation, "done" if calls else "wait")]

    @property
    def _say(self) -> str:
        return "done" if self.goal else "wait"


def draw_cases(rng: random.Random, *, problems: bool) -> Iterator[ShopRequest]:
    """Yield cases, levels in turn, each of another customer, until there are no more customers.

    Args:
        rng: the only source of randomness.
        problems: True for customers of problems, False for those of teaching material: a number
            belongs to one of them, whatever the seed.
    """
    customers = [
        number for number in CUSTOMERS if is_problem_prompt(f"customer {number}") == problems
    ]
    rng.shuffle(customers)
    for customer, level in zip(customers, cycle(LEVELS), strict=False):
        yield _draw(rng, level, customer)


def _draw(rng: random.Random, level: int, customer: int) -> ShopRequest:
    """Draw one order; any status; two orders; three that look alike; two wishes at once."""
    amount = {1: 1, 2: 1, 3: 2, 4: 3, 5: 3}[level]
    numbers = rng.sample(range(100, 1000), amount)
    statuses = ("new", "home") if level == 1 else tuple(ACTIONS)
    orders = tuple(
        Order(number, customer, item, rng.choice(statuses))
        for number, item in zip(numbers, _items(rng, amount, alike=level == 4), strict=True)
    )
    places = sorted(rng.sample(range(amount), 2 if level == 5 else 1))
    wish = " and ".join(f"the {orders[place].item}" for place in places)
    return ShopRequest(
        level=level,
        request=f"Customer {customer} does not want {wish}.",
        orders=orders,
        wishes=tuple(orders[place].number for place in places),
    )


def _items(rng: random.Random, amount: int, *, alike: bool) -> list[str]:
    """Draw different goods, or one of them in different colours."""
    colours = rng.sample(COLOURS, amount)
    goods = [rng.choice(ENGLISH_GOODS)] * amount if alike else rng.sample(ENGLISH_GOODS, amount)
    return [f"{colour} {good}" for colour, good in zip(colours, goods, strict=True)]
