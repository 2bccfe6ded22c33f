import json
import random
from itertools import islice

import pytest

from tasks.curation.marketplace.items import call_block
from tasks.curation.marketplace.shop import draw_cases
from tasks.gym.environments import shop
from tasks.gym.protocol import TURN_BREAK, join_turns
from tests.gym.environments.conftest import LOOK_UP, call, problem_of

RECORDS_OF_7 = "412 red mug new; 733 blue mug home; 734 black kite sent"


def answer(problem, *turns):
    """What the tools say to the last turn; None if the episode ends there."""
    found = shop.observe(problem, turns)
    return None if found is None else "|".join(message.content for message in found)


def verdict(problem, *turns):
    found = shop.verify(problem, join_turns(turns))
    return found.score, found.reason


def test_tools_read_and_change_the_records(case):
    problem = problem_of(case(412))

    assert RECORDS_OF_7 == answer(problem, LOOK_UP)
    assert "none" == answer(problem, call("orders", "customer", 9))
    cancel = call("cancel", "order", 412)
    assert "ok" == answer(problem, LOOK_UP, cancel)
    assert RECORDS_OF_7.replace("new", "cancel") == answer(problem, cancel, LOOK_UP)
    assert f"ok\n{RECORDS_OF_7.replace('new', 'cancel')}" == answer(problem, f"{cancel}\n{LOOK_UP}")


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (call("cancel", "order", 411), "error: no order 411"),
        (call("cancel", "order", "412"), "error: no such tool or arguments"),
        (call("cancel", "customer", 412), "error: no such tool or arguments"),
        (call("drop", "table", 1), "error: no such tool or arguments"),
        (call_block("cancel", {"order": 412, "force": 1}), "error: no such tool"),
        (call_block("cancel", {"order": 412}).removesuffix("</tool_call>"), "error: not a call"),
        ('{"name": "cancel", "parameters": {"order": 412}}', "error: not a call"),
    ],
)
def test_a_tool_says_what_is_wrong_with_a_call(case, turn, said):
    problem = problem_of(case(412))

    assert answer(problem, turn).startswith(said)
    assert (0.0, "wrong_state") == verdict(problem, turn, "done")


def test_a_turn_without_a_call_ends_the_episode(case):
    problem = problem_of(case(412))

    for turn in ("done", "<think>never closed", "", "<think>x</think>"):
        assert answer(problem, turn) is None


def test_an_episode_ends_after_its_last_turn_whatever_is_asked(case):
    problem = problem_of(case(412))

    assert answer(problem, *[LOOK_UP] * (shop.MAX_TURNS - 1)) is not None
    assert answer(problem, *[LOOK_UP] * shop.MAX_TURNS) is None


def test_the_answer_to_a_flood_of_calls_is_short(case):
    flood = "\n".join([LOOK_UP] * 1000)

    assert shop.MAX_CALLS == len(answer(problem_of(case(412)), flood).splitlines())


def test_success_is_the_final_state_of_the_records(case):
    cancel, refund = call("cancel", "order", 412), call("refund", "order", 733)

    assert (1.0, "correct") == verdict(problem_of(case(412)), LOOK_UP, cancel, "done")
    assert (1.0, "correct") == verdict(problem_of(case(412)), cancel, "done")
    assert (1.0, "correct") == verdict(problem_of(case(412, 733)), f"{refund}\n{cancel}", "done")
    assert (1.0, "correct") == verdict(problem_of(case(734)), LOOK_UP, "wait")
    wrong = problem_of(case(412)), "done"
    assert (0.0, "wrong_state") == verdict(wrong[0], LOOK_UP, "done")
    assert (0.0, "wrong_state") == verdict(wrong[0], f"{cancel}\n{refund}", "done")
    assert (0.0, "wrong_state") == verdict(wrong[0], call("refund", "order", 412), "done")
    assert (0.0, "unfinished") == verdict(wrong[0], LOOK_UP, cancel)
    assert (0.0, "unfinished") == verdict(wrong[0], *[LOOK_UP] * shop.MAX_TURNS, cancel, "done")
    assert (0.0, "not_told") == verdict(wrong[0], LOOK_UP, cancel, "goodbye")
    assert (0.0, "not_told") == verdict(problem_of(case(734)), "no idea")


def test_calls_while_thinking_change_nothing_and_fail(case):
    problem, cancel = problem_of(case(412)), call("cancel", "order", 412)
    thought = f"<think>{cancel} no</think>"

    assert (0.0, "call_in_thought") == verdict(problem, f"{thought}done")
    assert (0.0, "call_in_thought") == verdict(problem, f"{thought}{cancel}", "done")


def test_without_a_form_a_call_is_an_object_a_line(case):
    problem = problem_of(case(412))
    gold = {**json.loads(problem.answer), "form": "lines"}
    lines = problem.model_copy(update={"answer": json.dumps(gold)})
    cancel = '{"name": "cancel", "parameters": {"order": 412}}'

    assert (1.0, "correct") == verdict(lines, cancel, "done")
    assert (0.0, "wrong_state") == verdict(problem, cancel, "done")


def test_a_turn_cannot_forge_another_one(case):
    """The separator in a turn is taken out, so that its text is one turn as it was in RL."""
    cancel = call("cancel", "order", 412)
    forged = f"<think>hm{TURN_BREAK}</think>{cancel}{TURN_BREAK}done"

    assert (0.0, "unfinished") == verdict(problem_of(case(412)), forged)


def test_an_unreadable_gold_is_an_abstention(case):
    problem = problem_of(case(412)).model_copy(update={"answer": '{"orders": 1}'})

    assert (None, "bad_gold") == verdict(problem, "done")
    assert (None, "bad_gold") == verdict(problem, LOOK_UP)
    assert answer(problem, LOOK_UP) is None


def test_the_careful_clerk_solves_every_case_and_the_careless_one_only_new_orders():
    for case in islice(draw_cases(random.Random(0), problems=False), 300):
        problem = problem_of(case)
        status = {order.number: order.status for order in case.orders}
        new = all(status[number] == "new" for number in case.wishes)

        assert (1.0, "correct") == verdict(problem, *case.clerk(careful=True))
        assert new == (verdict(problem, *case.clerk(careful=False))[0] == 1.0)
