"""Rows that tell something of a person: counted, masked or left out, as the settings say."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from data_schemas.rows import Demonstration, Message, Outcome, Problem, Quarantined
from data_schemas.settings import PersonalData
from tasks.algorithms.personal_data import personal_passages, without_personal_data
from tasks.curation.items import Item, refuse
from tasks.store.files import canonical_json

STAGE = "privacy"
REASON = "personal_data"
ITEMS = "items"
"""In the counts: items with a passage of any kind."""

Counts = dict[str, dict[str, int]]
"""By source and kind."""


def apply_policy(
    items: Sequence[Item], policy: PersonalData
) -> tuple[list[Item], list[Quarantined], Counts]:
    """Do what the settings say with items that tell something of a person.

    Items of a benchmark are counted and stay as they are: others published them, and a masked
    problem is another problem.

    Returns:
        The kept items in order; refusals, which name kinds and never the text; counts.
    """
    kept: list[Item] = []
    refused: list[Quarantined] = []
    counts: dict[str, Counter[str]] = {}
    for item in items:
        kinds = {str(one.kind) for text in _texts(item) for one in personal_passages(text)}
        if kinds:
            counts.setdefault(item.record.source, Counter()).update([ITEMS, *kinds])
        if not kinds or item.evaluation or policy is PersonalData.COUNT:
            kept.append(item)
        elif policy is PersonalData.MASK:
            kept.append(_masked(item))
        else:
            detail = ", ".join(sorted(kinds))
            refused.append(refuse(item, STAGE, Outcome.QUARANTINED, REASON, detail))
    return kept, refused, {source: dict(kinds) for source, kinds in counts.items()}


def _texts(item: Item) -> list[str]:
    record = item.record
    last = record.response if isinstance(record, Demonstration) else record.answer
    return [*(message.content for message in record.messages), last]


def _masked(item: Item) -> Item:
    """Mask prompt, response and gold answer alike, so that a masked gold can still be met."""
    record = item.record
    if isinstance(record, Problem):
        record = _masked_problem(record)
    else:
        response = without_personal_data(record.response)
        update = {"messages": _masked_messages(record.messages), "response": response}
        record = record.model_copy(update=update)
    answers = item.answers and _masked_problem(item.answers)
    content = without_personal_data(item.content)
    facets = {name: without_personal_data(value) for name, value in item.facets.items()}
    return replace(item, record=record, content=content, answers=answers, facets=facets)


def _masked_problem(problem: Problem) -> Problem:
    answer = canonical_json(_masked_value(json.loads(problem.answer))).decode()
    update = {"messages": _masked_messages(problem.messages), "answer": answer}
    return problem.model_copy(update=update)


def _masked_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(
        message.model_copy(update={"content": without_personal_data(message.content)})
        for message in messages
    )


def _masked_value(value: object) -> object:
    """Mask every text of a gold answer; its keys are words of its verifier."""
    if isinstance(value, str):
        return without_personal_data(value)
    if isinstance(value, list):
        return [_masked_value(one) for one in value]
    if isinstance(value, dict):
        return {key: _masked_value(one) for key, one in value.items()}
    return value
