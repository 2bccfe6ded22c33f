"""Adapters for tool use: BFCL v4 single-turn sets, RLLA, xLAM, API-Bank, tau-bench retail."""

import ast
import json
import re
from typing import cast

from data_schemas.json_text import each_key_once, refuse_constant
from data_schemas.rows import Demonstration, Domain, Message, Parent, Problem, Role
from tasks.curation.cleaning.thoughts import as_response
from tasks.curation.cleaning.writing_systems import language_of
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow, tidy
from tasks.gym.protocol import THINK_CLOSE
from tasks.store.files import canonical_json

NO_CALL = "If no function fits the request, answer in words and call none."
CALL_FORMAT = (
    'To call functions, write one JSON object per line: {"name": ..., "parameters": {...}}. '
    f"{NO_CALL}\nFunctions:\n"
)
_JSON = json.JSONDecoder(object_pairs_hook=each_key_once, parse_constant=refuse_constant)
_TOOL_CALLS = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


def bfcl(row: RawRow) -> list[Item]:
    """Read a single-turn BFCL row: the functions to call, or none if no function fits.

    Irrelevance sets have no gold answer: the right answer is no call. Relevance sets have
    none either, but accept any call, so they cannot be verified and are refused.
    """
    key = row.text("id")
    if key.startswith("multi_turn"):
        raise BadRow("multi_turn", "is read by the adapter bfcl_multi_turn")
    turns = row.items("question")
    if len(turns) != 1:
        raise BadRow("multi_turn", f"'question' has {len(turns)} turns")
    columns = row.items("function", may_be_empty="irrelevance" in key)
    functions = cast("list[object]", row.gold(columns))
    system, dialogue = _dialogue(turns[0])
    listing = "\n".join(json.dumps(function, ensure_ascii=False) for function in functions)
    instruction = "\n".join([*system, f"{CALL_FORMAT}{listing}"])
    content = "\n".join(message.content for message in dialogue)
    problem = Problem(
        id=f"bfcl/{key}",
        domain=Domain.TOOL_USE,
        language=language_of(content),
        messages=(Message(role=Role.SYSTEM, content=instruction), *dialogue),
        verifier="bfcl_calls",
        answer=canonical_json(
            {
                "calls": _bfcl_gold(key, row),
                "functions": functions,
                # "simple_java_0", "java_7", "simple_javascript_3"
                **({"case_matters": True} if re.search(r"(?<![a-z])java", key) else {}),
            }
        ).decode(),
        source="bfcl",
        source_row=row.source_row,
    )
    return [Item(problem, content)]


def toolrl_rlla(row: RawRow) -> list[Item]:
    """Read a ToolRL row: a demonstration with real thoughts, and its calls as a problem.

    A row that calls nothing after its thought becomes a demonstration only: thoughts mention the
    tags of calls, and calls that they decide against.
    """
    content = row.text("input")
    response = row.text("output")
    demonstration = Demonstration(
        id=f"toolrl_rlla/{row.key}",
        parent=Parent.REASONING,
        domain=Domain.TOOL_USE,
        language=language_of(content),
        messages=(
            Message(role=Role.SYSTEM, content=row.text("instruction")),
            Message(role=Role.USER, content=content),
        ),
        response=response,
        source="toolrl_rlla",
        source_row=row.source_row,
    )
    calls = [
        _plain_call(line)
        for block in _TOOL_CALLS.findall(response.rpartition(THINK_CLOSE)[2])
        for line in block.splitlines()
        if line.strip()
    ]
    if not calls:
        return [Item(demonstration, content)]
    problem = Problem(
        id=demonstration.id,
        domain=demonstration.domain,
        language=demonstration.language,
        messages=demonstration.messages,
        verifier="tool_calls",
        answer=canonical_json({"calls": calls}).decode(),
        source=demonstration.source,
        source_row=demonstration.source_row,
    )
    return [Item(problem, content), Item(demonstration, content, answers=problem)]


def xlam(row: RawRow) -> list[Item]:
    """Read an xLAM row (APIGen): a request, its functions and the calls, the latter two as JSON.

    Without calls, the right answer is no call, and there is nothing to imitate.
    """
    content = row.text("query")
    functions = _objects(row, "tools")
    calls = [
        {"name": call.get("name"), "parameters": call.get("arguments", call.get("parameters"))}
        for call in _objects(row, "answers")
    ]
    named = {_function_of(one).get("name") for one in functions}
    for call in calls:
        if not isinstance(call["parameters"], dict):
            raise BadRow("bad_gold", f"a call in 'answers' has no arguments: {call['name']!r}")
        if call["name"] not in named:
            raise BadRow("bad_gold", f"'answers' calls {call['name']!r}, which 'tools' lacks")
    listing = "\n".join(json.dumps(_function_of(one), ensure_ascii=False) for one in functions)
    problem = Problem(
        id=f"xlam/{row.optional('id', row.key)}",
        domain=Domain.TOOL_USE,
        language=language_of(content),
        messages=(
            Message(role=Role.SYSTEM, content=f"{CALL_FORMAT}{listing}"),
            Message(role=Role.USER, content=content),
        ),
        verifier="tool_calls",
        answer=canonical_json({"calls": calls}).decode(),
        source="xlam",
        source_row=row.source_row,
    )
    if not calls:
        return [Item(problem, content)]
    demonstration = Demonstration(
        id=problem.id,
        parent=Parent.REASONING,
        domain=problem.domain,
        language=problem.language,
        messages=problem.messages,
        response=as_response("\n".join(json.dumps(call, ensure_ascii=False) for call in calls)),
        source=problem.source,
        source_row=problem.source_row,
    )
    return [Item(problem, content), Item(demonstration, content, answers=problem)]


def _objects(row: RawRow, name: str) -> list[dict[str, object]]:
    """Return the objects of a list, which a cell may write as JSON.

    Raises:
        BadRow: it is no list of objects.
    """
    cell = row.gold(row.fields.get(name))
    if isinstance(cell, str):
        try:
            cell = _JSON.decode(cell)
        except ValueError as error:
            raise BadRow("bad_gold", f"{name!r} is not JSON: {error}") from error
    if not isinstance(cell, list) or not all(isinstance(one, dict) for one in cell):
        raise BadRow("bad_gold", f"{name!r} is no list of objects")
    return cast("list[dict[str, object]]", cell)


def _function_of(tool: dict[str, object]) -> dict[str, object]:
    """Return what a tool says of its function, which OpenAI's form wraps."""
    function = tool.get("function")
    return cast("dict[str, object]", function) if isinstance(function, dict) else tool


def api_bank(row: RawRow) -> list[Item]:
    """Read an API-Bank row: a dialogue up to one call, with the functions in the system message."""
    answer = row.fields.get("answer")
    gold = ast.literal_eval(answer) if isinstance(answer, str) else answer
    calls = gold if isinstance(gold, list) else [gold]
    named_calls = [
        {"name": call["name"], "parameters": call["parameters"]}
        for call in calls
        if isinstance(call, dict) and "name" in call
    ]
    if not named_calls or len(named_calls) != len(calls):
        raise BadRow("no_gold", f"'answer' is no call: {answer!r}")
    content = row.text("user")
    problem = Problem(
        id=f"api_bank/{row.key}",
        domain=Domain.TOOL_USE,
        language=language_of(content),
        messages=(
            Message(role=Role.SYSTEM, content=row.text("system")),
            Message(role=Role.USER, content=content),
        ),
        verifier="tool_calls",
        answer=canonical_json({"calls": named_calls}).decode(),
        source="api_bank",
        source_row=row.source_row,
    )
    return [Item(problem, content)]


_RETAIL_CHANGES = (
    "cancel_pending_order",
    "exchange_delivered_order_items",
    "modify_pending_order_address",
    "modify_pending_order_items",
    "modify_pending_order_payment",
    "modify_user_address",
    "return_delivered_order_items",
    "transfer_to_human_agents",
)
"""The functions of tau-bench's retail shop that change something."""


def tau_bench_retail(row: RawRow) -> list[Item]:
    """Read a tau-bench retail task: which functions settle what the customer wants, each once.

    The arguments need the shop's data, which only a dialogue with its tools reveals.
    """
    wish = row.text("instruction")
    actions = row.items("actions")
    names = sorted({str(one["name"]) for one in actions if isinstance(one, dict)})
    changes = [name for name in names if name in _RETAIL_CHANGES]
    if not changes:
        raise BadRow("no_gold", f"none of 'actions' changes the shop: {names}")
    prompt = (
        f"A customer of an online shop has this brief:\n{wish}\n"
        "Which of these functions does the agent have to call? "
        f"{', '.join(_RETAIL_CHANGES)}.\n"
        'Answer with one JSON object: {"functions": [...]}, each function once.'
    )
    problem = Problem(
        id=f"tau_bench_retail/{row.optional('id', row.key)}",
        domain=Domain.TOOL_USE,
        language="en",
        messages=(Message(role=Role.USER, content=prompt),),
        verifier="extraction",
        answer=canonical_json({"fields": {"functions": changes}}).decode(),
        source="tau_bench_retail",
        source_row=row.source_row,
    )
    return [Item(problem, wish)]


def _dialogue(turn: object) -> tuple[list[str], tuple[Message, ...]]:
    """Split one BFCL turn into its system texts and the messages that follow."""
    if not isinstance(turn, list):
        raise BadRow(
            "bad_messages", f"'question' has a turn that is {type(turn).__name__}, not a list"
        )
    if not all(isinstance(message, dict) for message in turn):
        raise BadRow("bad_messages", "'question' has a message that is no object")
    messages = [Message.model_validate(message) for message in turn]
    turns = tuple(
        message.model_copy(update={"content": tidy(message.content)})
        for message in messages
        if message.role is not Role.SYSTEM
    )
    if not turns or turns[-1].role is not Role.USER:
        raise BadRow("bad_messages", "the last message is not the user's")
    return [tidy(m.content) for m in messages if m.role is Role.SYSTEM], turns


def _bfcl_gold(key: str, row: RawRow) -> list[dict[str, object]]:
    if "irrelevance" in key:
        return []
    gold = row.gold(row.fields.get("ground_truth"))
    if not isinstance(gold, list) or not gold:
        raise BadRow("no_gold", "the row has no 'ground_truth'")
    calls: list[dict[str, object]] = []
    for call in gold:
        if not isinstance(call, dict) or len(call) != 1:
            raise BadRow("bad_gold", f"'ground_truth' has no {{name: arguments}}: {call!r}")
        ((name, parameters),) = call.items()
        calls.append({"name": name, "parameters": parameters})
    return calls


def _plain_call(line: str) -> dict[str, object]:
    try:
        call = json.loads(line)
    except ValueError as error:
        raise BadRow("bad_gold", f"a line in <tool_call> is not JSON: {error}") from error
    if not isinstance(call, dict) or not isinstance(call.get("parameters"), dict):
        raise BadRow("bad_gold", f"a call has no parameters object: {line[:80]!r}")
    return {"name": call.get("name"), "parameters": call["parameters"]}
