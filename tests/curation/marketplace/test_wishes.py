"""Purchases with hidden wishes: one offer is right, and no source can be left out."""

import random
import re
from itertools import islice

import pytest

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.curation.marketplace.items import call_block
from tasks.curation.marketplace.wishes import MISSED, POLICY, TOOLS, HiddenWish, draw_wishes
from tasks.gym.environments import shop
from tasks.gym.protocol import join_turns
from tasks.store.files import canonical_json
from tests import records


def drawn(amount: int = 300, *, problems: bool = True, seed: int = 0) -> list[HiddenWish]:
    return list(islice(draw_wishes(random.Random(seed), problems=problems), amount))


def problem_of(wish: HiddenWish) -> Problem:
    return records.problem_of(
        (
            Message(role=Role.SYSTEM, content=POLICY),
            Message(role=Role.USER, content=f"{TOOLS}\n{wish.request}"),
        ),
        canonical_json(wish.answer).decode(),
        id=f"wish/{wish.customer}",
        domain=Domain.TOOL_USE,
        verifier="shop",
        source="wish",
    )


def verdict(wish: HiddenWish, *turns: str) -> tuple[float, str]:
    found = shop.verify(problem_of(wish), join_turns(turns))
    assert found.score is not None
    return found.score, found.reason


def said(wish: HiddenWish, *turns: str) -> str | None:
    found = shop.observe(problem_of(wish), turns)
    return None if found is None else found[0].content


def test_one_offer_meets_all_wishes_and_at_the_highest_level_no_source_can_be_left_out():
    for wish in drawn():
        fits = {
            "colour": lambda one, wish=wish: one.colour == wish.colour,
            "material": lambda one, wish=wish: one.material == wish.material,
            "price": lambda one, wish=wish: one.price <= wish.limit,
        }
        left = {
            name: [
                one
                for one in wish.offers
                if all(rule(one) for other, rule in fits.items() if other != name)
            ]
            for name in (*fits, "nothing")
        }
        assert [wish.right] == left["nothing"]
        assert set(MISSED[wish.level]) == {name for name in fits if len(left[name]) > 1}


def test_the_request_tells_neither_colour_nor_material():
    for wish in drawn():
        assert wish.colour not in wish.request
        assert wish.material not in wish.request
        assert [str(wish.customer), str(wish.limit)] == re.findall(r"\d+", wish.request)


def test_customers_of_problems_are_in_no_teaching_material_of_another_seed():
    taught = {wish.customer for wish in drawn(800, problems=False, seed=1)}

    assert taught.isdisjoint(wish.customer for wish in drawn(800))
    assert len(taught) == 800


def test_who_gathers_the_wishes_is_right_and_who_buys_at_once_is_at_the_odds():
    wishes = drawn(500)
    careful = [verdict(wish, *wish.clerk(careful=True)) for wish in wishes]
    careless = [verdict(wish, *wish.clerk(careful=False))[0] for wish in wishes]

    assert {(1.0, "correct")} == set(careful)
    # Offers within the limit: two at levels 1 and 2, one at 3, three at 4 and 5.
    assert abs(sum(careless) / 500 - (1 / 2 + 1 / 2 + 1 + 1 / 3 + 1 / 3) / 5) < 0.08


@pytest.mark.parametrize(
    ("call", "arguments", "answer"),
    [
        ("ask", {"about": "size"}, shop.UNKNOWN),
        ("profile", {"customer": 1}, "none"),
        ("offers", {"item": "house"}, "none"),
        ("buy", {"offer": 1}, "error: no offer 1"),
        ("buy", {"offer": "1"}, shop.NO_TOOL),
        ("profile", {}, shop.NO_TOOL),
    ],
)
def test_a_tool_says_what_it_does_not_know(call, arguments, answer):
    assert answer == said(drawn(1)[0], call_block(call, arguments))


def test_a_second_purchase_or_none_is_wrong():
    wish = next(one for one in drawn() if one.level == 5)
    right = call_block("buy", {"offer": wish.right.number})
    other = next(one for one in wish.offers if one != wish.right)

    assert (1.0, "correct") == verdict(wish, right, "done")
    both = f"{right}\n{call_block('buy', {'offer': other.number})}"
    assert (0.0, "wrong_state") == verdict(wish, both, "done")
    assert (0.0, "wrong_state") == verdict(wish, "done")


def test_a_shop_without_offers_sells_nothing():
    wish = drawn(1)[0]
    problem = problem_of(wish).model_copy(
        update={"answer": canonical_json({**wish.answer, "offers": []}).decode()}
    )
    call = call_block("profile", {"customer": wish.customer})

    said_there = shop.observe(problem, [call])
    assert said_there is not None
    assert [shop.NO_TOOL] == [message.content for message in said_there]
