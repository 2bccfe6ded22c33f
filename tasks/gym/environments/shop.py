"""A shop with records of orders: tools read and change them, success is judged by the final state.

Gold: {"orders": [[number, customer, item, status], ...], "goal": {"412": "cancel"}, "say": "done"};
of a purchase, {"offers": [[number, item, text, price], ...], "profiles": {"4321": "red"},
"replies": {"material": "wool"}, "goal": {"577": "buy"}, ...}.
A turn with calls in the gold's "form" (`forms`; without one, JSON calls as of `tool_calls`) is
answered by the tools, one line per call. A turn without a call ends the episode. The state is a
function of the turns, so that an episode continues from its tokens alone. A call within a thought
fails the episode: some servers make it.

Tools: `orders(customer)` lists a customer's orders; `cancel(order)` and `refund(order)` change one.
Where there are offers, `offers(item)` lists those of an item, `profile(customer)` tells what is
known of a customer, `ask(about)` is answered by the customer, and `buy(offer)` buys one.
They do what they are told: which action is right for which status is the policy's to know, as in
tau-bench (arXiv 2406.12045), whose judgement by the final state of the records this follows.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, ValidationError

from data_schemas.rows import Message, Problem, Role
from data_schemas.verdicts import Verdict, scored
from tasks.algorithms.tool_reward import ToolCall
from tasks.gym.protocol import Gold, answer_part, check_against_gold, split_turns
from tasks.gym.tools.forms import FORMS, calls_while_thinking, served_part
from tasks.gym.tools.tool_calls import AT_THE_TAG, CALL_IN_THOUGHT, parse_calls

MAX_TURNS = 6
MAX_CALLS = 8
"""Calls of one turn that are carried out: an answer stays short whatever is asked."""
CHANGES = ("cancel", "refund")
BUY = "buy"
UNKNOWN = "not sure"
"""What the customer answers to a question about anything but a wish."""
NO_TOOL = "error: no such tool or arguments"


class ShopRecords(Gold):
    """The records at the beginning, and the changes that handle the customer's request."""

    orders: tuple[tuple[int, int, str, str], ...]
    """(number, customer, item, status)."""
    offers: tuple[tuple[int, str, str, int], ...] = ()
    """(number, item, what it is like, price)."""
    profiles: dict[str, str] = Field(default_factory=dict)
    """What is known of a customer, by number."""
    replies: dict[str, str] = Field(default_factory=dict)
    """What the customer answers, by what is asked about."""
    goal: dict[str, str]
    """Change of every order or offer that has to change, by its number."""
    say: str
    """What the last turn has to tell the customer: doing nothing is no success by itself."""
    form: Literal["lines", "hermes", "qwen3_xml", "llama3_json", "pythonic"] = "lines"


def observe(problem: Problem, turns: Sequence[str]) -> tuple[Message, ...] | None:
    """Answer the last turn; None ends the episode, also if the gold cannot be read.

    The verifier abstains then; raising would end the whole run for one row.
    """
    try:
        gold = ShopRecords.model_validate_json(problem.answer)
    except ValidationError:
        return None
    calls = _calls(gold, turns[-1])
    if calls == [] or len(turns) >= MAX_TURNS:
        return None
    changes: dict[str, str] = {}
    for turn in turns[:-1]:
        _carry_out(gold, changes, _calls(gold, turn))
    return (Message(role=Role.TOOL, content=_carry_out(gold, changes, calls)),)


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if the records are in the goal state and the customer is told so, else 0."""
    return check_against_gold(problem, response, ShopRecords, _check)


def _check(gold: ShopRecords, response: str) -> Verdict:
    turns = split_turns(response)
    if len(turns) > MAX_TURNS:  # no episode has more
        return scored(0.0, "unfinished", f"{len(turns)} turns")
    changes: dict[str, str] = {}
    for turn in turns[:-1]:
        _carry_out(gold, changes, _calls(gold, turn))
    if any(map(calls_while_thinking, turns)):
        return scored(0.0, CALL_IN_THOUGHT, AT_THE_TAG)
    if _calls(gold, turns[-1]) != []:
        return scored(0.0, "unfinished", f"{len(turns)} turns, the last one with a call")
    if changes != gold.goal:
        return scored(0.0, "wrong_state", f"changed {changes or 'nothing'}, goal {gold.goal}")
    if (answer_part(turns[-1]) or "").lower().rstrip(".") != gold.say:
        return scored(0.0, "not_told", f"the last turn does not say {gold.say!r}")
    return scored(1.0, "correct", f"{len(turns)} turns")


def _calls(gold: ShopRecords, turn: str) -> list[ToolCall] | None:
    """Read the calls of a turn: [] without any, None if it tries to call and fails."""
    text = answer_part(turn) or ""
    if gold.form == "lines":
        calls = parse_calls(text)
    else:
        calls = FORMS[gold.form].parse(served_part(turn), ()) if text else []
    return calls or (None if "{" in text else [])


def _carry_out(gold: ShopRecords, changes: dict[str, str], calls: list[ToolCall] | None) -> str:
    """Make the calls of a turn; return what the tools answer, one line per call."""
    if calls is None:
        return "error: not a call"
    return "\n".join(_answer(gold, changes, call) for call in calls[:MAX_CALLS])


def _answer(gold: ShopRecords, changes: dict[str, str], call: ToolCall) -> str:
    match call.name, dict(call.parameters):
        case "orders", {"customer": int(customer), **others} if not others:
            return _list_orders(gold, changes, customer)
        case name, {"order": int(number), **others} if name in CHANGES and not others:
            if all(number != order[0] for order in gold.orders):
                return f"error: no order {number}"
            changes[str(number)] = name
            return "ok"
        case _ if gold.offers:
            return _sell(gold, changes, call)
        case _:
            return NO_TOOL


def _sell(gold: ShopRecords, changes: dict[str, str], call: ToolCall) -> str:
    """Answer a call of a purchase."""
    match call.name, dict(call.parameters):
        case "profile", {"customer": int(customer), **others} if not others:
            return gold.profiles.get(str(customer), "none")
        case "ask", {"about": str(about), **others} if not others:
            return gold.replies.get(about, UNKNOWN)
        case "offers", {"item": str(item), **others} if not others:
            lines = [
                f"{number} {text} {price}" for number, of, text, price in gold.offers if of == item
            ]
            return "; ".join(lines) or "none"
        case "buy", {"offer": int(number), **others} if not others:
            if all(number != offer[0] for offer in gold.offers):
                return f"error: no offer {number}"
            changes[str(number)] = BUY
            return "ok"
        case _:
            return NO_TOOL


def _list_orders(gold: ShopRecords, changes: Mapping[str, str], customer: int) -> str:
    lines = [
        f"{number} {item} {changes.get(str(number), status)}"
        for number, owner, item, status in gold.orders
        if owner == customer
    ]
    return "; ".join(lines) or "none"
