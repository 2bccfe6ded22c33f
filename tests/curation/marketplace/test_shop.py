import random
import re
from itertools import islice

from tasks.curation.marketplace.shop import ACTIONS, LEVELS, draw_cases


def drawn(problems, amount=200, seed=0):
    return list(islice(draw_cases(random.Random(seed), problems=problems), amount))


def test_the_same_seed_gives_the_same_cases_and_no_customer_has_two():
    assert drawn(True) == drawn(True)
    customers = [case.orders[0].customer for case in drawn(True, 600) + drawn(False, 800)]
    assert len(set(customers)) == len(customers)


def test_customers_of_problems_are_in_no_teaching_material_of_another_seed():
    taught = {case.orders[0].customer for case in drawn(False, 800, seed=1)}

    assert taught.isdisjoint(case.orders[0].customer for case in drawn(True, 600))


def test_every_level_and_every_status_occurs():
    cases = drawn(True)

    assert set(LEVELS) == {case.level for case in cases}
    assert set(ACTIONS) == {order.status for case in cases for order in case.orders}


def test_the_goal_follows_the_policy():
    for case in drawn(False):
        status = {str(order.number): order.status for order in case.orders}
        wanted = {str(number) for number in case.wishes}

        assert {n for n in wanted if status[n] != "sent"} == case.goal.keys()
        assert all(ACTIONS[status[number]] == action for number, action in case.goal.items())


def test_only_the_records_say_which_order_is_meant():
    for case in drawn(True):
        assert [str(case.orders[0].customer)] == re.findall(r"\d+", case.request)
