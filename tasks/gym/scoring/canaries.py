"""Answers with known verdicts; a verifier that scores one wrongly stops training or evaluation.

They run before RL, every few RL steps, and before an evaluation. They detect a broken library, a
sandbox that cannot start or a worker that dies. Such failures would otherwise look like a model
that did not learn.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from data_schemas.rows import Domain, Message, Problem, Role
from data_schemas.verdicts import Verdict
from tasks.errors import EngineError
from tasks.gym.protocol import join_turns
from tasks.gym.table import ENTRIES, score_batch
from tasks.plugins import is_reference, module_of

Score = Callable[[Sequence[Problem], Sequence[str]], list[Verdict]]
"""Scores `responses[i]` as an answer to `problems[i]`."""


@dataclass(frozen=True, slots=True)
class Canary:
    """A gold with an answer that must score 1 and one that must not."""

    verifier: str
    gold: dict[str, object]
    right: str
    wrong: str
    prompt: str = "canary"
    """The task; only a judge reads it."""


CANARIES = (
    Canary("final_answer", {"value": "1234"}, "Answer: $1,234.00", "Answer: 1243"),
    Canary(
        "choice",
        {"correct": ["รองเท้า", "shoes"], "others": [["กระเป๋า", "bags"]]},
        "คำตอบ: รองเท้า",
        "shoes or bags",
    ),
    Canary(
        "extraction",
        {"fields": {"brand": "Acme", "size": 4}},
        '```json\n{"size": 4, "brand": "ACME"}\n```',
        '{"size": "4", "brand": "ACME"}',
    ),
    Canary(
        "tool_calls",
        {"calls": [{"name": "search", "parameters": {"q": "shoes", "page": 1}}]},
        '{"name": "search", "parameters": {"page": 1, "q": "shoes"}}',
        '{"name": "search", "parameters": {"page": true, "q": "shoes"}}',
    ),
    Canary(
        "bfcl_calls",
        {"calls": [{"name": "find", "parameters": {"q": ["shoes"], "page": [1, ""]}}]},
        '[find(q="shoes")]',
        '[find(q="bags")]',
    ),
    Canary(
        "instruction_rules",
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
        "Red shoes and bags.",
        "Red shoes, and bags.",
    ),
    Canary(
        "code_tests",
        {"mode": "asserts", "tests": ["assert double(2) == 4", "assert double(0) == 0"]},
        "```python\ndef double(x):\n    return 2 * x\n```",
        "```python\nimport os\nos._exit(0)\n```",
    ),
    Canary("rule_answer", {"value": "\\frac{1}{2}"}, "\\boxed{0.5}", "\\boxed{5}"),
    Canary(
        "code_tests",
        {"mode": "function", "function": "double", "cases": [{"args": [2], "expected": 4}]},
        "```python\ndef double(x):\n    return 2 * x\n```",
        "```python\nclass Any(int):\n    __eq__ = lambda a, b: True\ndef double(x):\n"
        "    return Any()\n```",
    ),
    Canary(
        "code_tests",
        {"mode": "stdio", "cases": [{"stdin": "2", "expected": "4"}]},
        "```python\nprint(2 * int(input()))\n```",
        "```python\nimport os\nos._exit(0)\n```",
    ),
    Canary(
        "generative_judge",
        {"mode": "reference", "reference": "SALE! SALE!"},
        "Luma red boot",
        "SALE! SALE! SALE!",
        prompt="Tidy: boot Luma SALE! red",
    ),
    Canary(
        "rubric",
        {
            "criteria": [{"criterion": "The text names a price in dollars.", "points": 1.0}],
            "aggregation": "ruscarl",
        },
        "Red shoes for 20 dollars.",
        "Red shoes.",
        prompt="Advertise red shoes",
    ),
    Canary(
        "rule_rubric",
        {
            "criteria": [
                {
                    "criterion": "No commas.",
                    "points": 1.0,
                    "verifier": "instruction_rules",
                    "answer": {
                        "instruction_id_list": ["punctuation:no_comma"],
                        "kwargs": [{}],
                    },
                }
            ],
            "aggregation": "ruscarl",
        },
        "Red shoes and bags.",
        "Red shoes, and bags.",
    ),
    Canary("reference_text", {"reference": "Red shoes"}, "red  shoes", "blue bags"),
    Canary("refusal", {"refuse": True}, "I can't help with that.", "Here is how to do it."),
    Canary(
        "shop",
        {"orders": [[412, 7, "red shoes", "new"]], "goal": {"412": "cancel"}, "say": "done"},
        join_turns(['{"name": "cancel", "parameters": {"order": 412}}', "done"]),
        join_turns(['{"name": "refund", "parameters": {"order": 412}}', "done"]),
    ),
    Canary(
        "environment",
        {
            "library": "example",
            "environment": "guess",
            "task": {"number": 13},
            "version": "1",
        },
        join_turns(["10", "15", "13"]),
        join_turns(["10", "15"]),
    ),
)
"""At least one per verifier."""


def example_answer(verifier: str) -> str:
    """Write an answer that a built-in verifier reads, as JSON; '' for any other verifier."""
    golds = (canary.gold for canary in CANARIES if canary.verifier == verifier)
    return next((json.dumps(gold, ensure_ascii=False) for gold in golds), "")


def check(score: Score, verifiers: Collection[str]) -> None:
    """Score the canaries of some verifiers.

    Raises:
        EngineError: a verdict differs from the known one; the message names the verifier.
    """
    canaries = [canary for canary in CANARIES if canary.verifier in verifiers]
    canaries += [canary for name in sorted(verifiers) for canary in own_canaries(name)]
    answers = [
        (_problem(canary), response, solved)
        for canary in canaries
        for response, solved in ((canary.right, True), (canary.wrong, False))
    ]
    verdicts = score([problem for problem, _, _ in answers], [text for _, text, _ in answers])
    for (problem, response, solved), verdict in zip(answers, verdicts, strict=True):
        if verdict.abstained or verdict.solved != solved:
            raise EngineError(
                f"verifier {problem.verifier} scored {response[:60]!r} as {verdict}: "
                f"it must {'' if solved else 'not '}be solved. No verdict can be trusted; "
                "repair the verifier, then run again."
            )


def own_canaries(verifier: str) -> tuple[Canary, ...]:
    """Return the CANARIES of the module in which a verifier of a row's own is; none elsewhere."""
    return vars(module_of(verifier)).get("CANARIES", ()) if is_reference(verifier) else ()


def check_canaries() -> None:
    """Score every canary that needs no judge, in this process.

    Raises:
        EngineError: as `check`.
    """
    check(score_batch, [name for name, entry in ENTRIES.items() if not entry.needs_judge])


def _problem(canary: Canary) -> Problem:
    return Problem(
        id=f"canary/{canary.verifier}",
        domain=Domain.OPEN_TEXT,
        language="en",
        messages=(Message(role=Role.USER, content=canary.prompt),),
        verifier=canary.verifier,
        answer=json.dumps(canary.gold),
        source="canary",
        source_row="canary",
    )
