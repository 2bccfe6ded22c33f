"""Purchases on a generated shop: tools, ends, verdicts and metrics."""

import json
from pathlib import Path

import pytest

from tasks.gym.environments.outside import play
from tasks.gym.environments.shopping.catalogue import Shop
from tasks.gym.environments.shopping.metrics import metrics
from tasks.gym.environments.shopping.purchase import MAX_CALLS, Purchase
from tasks.gym.environments.shopping.shoppers import SHOPPERS, buy
from tasks.gym.environments.shopping.wishes import is_met
from tasks.gym.environments.shopping.world import generate

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop(generate(3, 60))


@pytest.fixture
def purchase(shop) -> Purchase:
    return Purchase(shop, next(iter(shop.customers.values())))


def ask(purchase, name, **parameters):
    (message,) = purchase.answer([{"name": name, "parameters": parameters}])
    return json.loads(message["content"])


def test_one_product_meets_all_wishes_and_no_source_can_be_left_out(shop):
    for customer in shop.customers.values():
        good = customer.target.title

        def fitting(*sources, customer=customer, good=good):
            wishes = [wish for wish in customer.wishes if wish.source in sources]
            rivals = [one for one in shop.products.values() if one.title == good]
            return [o for o in rivals if all(is_met(w, o, customer.voucher) for w in wishes)]

        assert [customer.target] == fitting("query", "persona", "clarification")
        assert len(fitting("query", "persona")) > 1
        assert len(fitting("query", "clarification")) > 1
        assert len(fitting("persona", "clarification")) > 1


def test_who_gathers_all_wishes_is_right_and_who_does_not_is_at_the_odds(shop):
    accuracy = {
        name: metrics([buy(shop, one, shopper)[0] for one in shop.customers.values()])["accuracy"]
        for name, shopper in SHOPPERS.items()
    }
    assert accuracy["careful"] == 1.0
    # One of five products is right, and one of three that fit the request; 60 customers each.
    assert abs(accuracy["hasty"] - 1 / 5) < 0.2
    assert abs(accuracy["reader"] - 1 / 3) < 0.2


def test_a_question_is_answered_once_and_only_about_what_it_names(purchase):
    assert "not sure" in ask(purchase, "ask_user", question="What colour?")["user_response"]
    assert "please" in ask(purchase, "ask_user", question="Which size?")["user_response"]
    assert "not sure" in ask(purchase, "ask_user", question="Which size?")["user_response"]
    long = ask(purchase, "ask_user", question="size " * 21)["user_response"]
    assert "at most 100" in long
    for _ in range(6):
        ask(purchase, "ask_user", question="Why?")
    assert "too many" in ask(purchase, "ask_user", question="Which size?")["user_response"]


def test_ratings_are_no_part_of_the_details(purchase, shop):
    key = next(iter(shop.products))
    product = ask(purchase, "get_product_details", product_id=key)["product"]
    assert "average_rating" not in product
    assert {"average_rating", "rating_number"} == set(
        ask(purchase, "get_product_review_stats", product_id=key)
    )


def test_a_call_that_cannot_be_carried_out_is_answered_and_counted(purchase):
    assert "no such tool" in ask(purchase, "pay")["error"]
    assert "KeyError" in ask(purchase, "get_product_details", product_id="P0")["error"]
    assert "KeyError" in ask(purchase, "search_products")["error"]
    assert ask(purchase, "search_products", query='" OR *')["found"] == 0
    assert purchase.calls == 4


def test_the_second_turn_without_a_call_ends_a_purchase_unrecommended(purchase):
    assert [{"role": "user"}.items() <= m.items() for m in purchase.answer(None)] == [True]
    assert purchase.answer(None) == []
    result = purchase.result()
    assert (result.finished, result.recommended, result.is_right) == (True, None, False)


def test_calls_beyond_the_limit_end_a_purchase(purchase):
    turns = [purchase.answer([{"name": "pay", "parameters": {}}]) for _ in range(MAX_CALLS)]
    assert all(turns[:-1])
    assert turns[-1] == []
    assert purchase.result().is_right is False


def test_of_several_calls_the_first_is_made(purchase):
    call = {"name": "get_user_profile", "parameters": {}}
    messages = purchase.answer([call, {"name": "recommend_product", "parameters": {}}])
    assert ["tool", "user"] == [message["role"] for message in messages]
    assert not purchase.finished


def test_an_opinion_leaves_a_purchase_undecided_unless_another_wish_fails():
    row = next(iter(generate(3, 1)))
    row["rubrics"].append(
        {
            "id": "r6",
            "type": "review_opinion",
            "field": "reviews",
            "expected_value": {"opinion": "x"},
        }
    )
    shop = Shop([row])
    (customer,) = shop.customers.values()

    def judged(key):
        purchase = Purchase(shop, customer)
        purchase.answer([{"name": "recommend_product", "parameters": {"product_id": key}}])
        return purchase.result()

    twin = {**row["target_product"], "product_id": "PX"}
    shop = Shop([{**row, "others": [*row["others"], twin]}])
    assert judged(customer.target.product_id).is_right is True
    assert judged("PX").is_right is None
    assert judged(row["others"][0]["product_id"]).is_right is False
    found = metrics([judged("PX"), judged(customer.target.product_id)])
    assert (found["undecided"], found["accuracy"]) == (1, 1.0)


def test_a_row_of_another_layout_is_refused_with_its_line():
    rows = [next(iter(generate(3, 1))), {"id": "x"}]
    with pytest.raises(ValueError, match="line 2: KeyError 'intent_category'"):
        Shop(rows)
    with pytest.raises(ValueError, match="no row"):
        Shop([])


def test_customers_of_a_file_are_offered_where_the_machine_says_it_is(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in generate(9, 3)), encoding="utf-8")
    monkeypatch.setenv(play.VARIABLE, f"shopping:mine={path}")
    try:
        version, tasks = play.offer("shopping", "mine", {}, {"limit": 9})
    finally:
        play.close()
    assert [f"generated-9-{number}" for number in range(3)] == [
        task["task"]["customer"] for task in tasks
    ]
    assert Shop(generate(9, 3)).digest in version


def test_the_recorded_odds_are_those_of_their_command():
    shop = Shop(generate(1, 100))
    right = {
        name: sum(buy(shop, one, shopper)[0].is_target for one in shop.customers.values())
        for name, shopper in SHOPPERS.items()
    }

    evidence = json.loads((ROOT / "tests" / "bench" / "shoppers.json").read_bytes())

    assert evidence["command"].endswith(" 1 100")
    assert right == {
        name: round(100 * one["accuracy"]) for name, one in evidence["shoppers"].items()
    }
