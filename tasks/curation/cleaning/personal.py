"""Rows that tell something of a person: counted, masked or left out, as the settings say.

A row is read as a whole: what its prompt says of a number holds for its response and its gold
answer, in which the word that names the number is often missing. So a masked gold can still be met,
and an order number that the prompt keeps is kept in the gold. An id that names a person is masked,
too.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from data_schemas.rows import Demonstration, Message, Outcome, Problem, QuarantinedItem
from data_schemas.settings import PersonalData
from tasks.algorithms.personal_data import (
    PersonalKind,
    personal_passages,
    replace_spellings,
    without_personal_data,
)
from tasks.curation.items import Item, refuse
from tasks.gym.table import runs_gold
from tasks.store.files import canonical_json, sha256_bytes

STAGE = "privacy"
REASON = "personal_data"
ITEMS = "items"
"""In the counts: items with a passage of any kind."""
IN_GOLD = "in_gold"
"""In the counts: items whose gold answer has one, which a mask changes."""

Counts = dict[str, dict[str, int]]
"""By source and kind."""


def apply_policy(
    items: Sequence[Item], policy: PersonalData
) -> tuple[list[Item], list[QuarantinedItem], Counts]:
    """Do what the settings say with items that tell something of a person.

    Items of a benchmark are counted and stay as they are: others published them, and a masked
    problem is another problem. For the same reason an item whose gold answer runs (tests of a
    program, the records of an environment) is left out where a mask would change that.

    Returns:
        The kept items in order; refusals, which name kinds and never the text; counts.
    """
    kept: list[Item] = []
    refused: list[QuarantinedItem] = []
    counts: dict[str, Counter[str]] = {}
    for item in items:
        spellings = _spellings(item)
        kinds = set(map(str, spellings.values()))
        golds = _golds(item) if kinds else []
        in_gold = [one for one in golds if _masked_gold(one.answer, spellings) != one.answer]
        if kinds:
            of_gold = [IN_GOLD] if in_gold else []
            counts.setdefault(item.record.source, Counter()).update([ITEMS, *kinds, *of_gold])
        is_left_out = policy is PersonalData.QUARANTINE or any(map(runs_gold, in_gold))
        if not kinds or item.evaluation or policy is PersonalData.COUNT:
            kept.append(item)
        elif is_left_out:
            detail = ", ".join(sorted(kinds))
            if policy is PersonalData.MASK:
                detail += ": in a gold answer that runs, and would be another if masked"
            nameless = _masked(item, spellings)  # the id is the key of a refusal
            refused.append(refuse(nameless, STAGE, Outcome.QUARANTINED, REASON, detail))
        else:
            kept.append(_masked(item, spellings))
    return kept, refused, {source: dict(kinds) for source, kinds in counts.items()}


def _spellings(item: Item) -> dict[str, PersonalKind]:
    """Return what the row tells of people, each as it is spelled.

    A number that the prompt has as that of an order is nobody's in the rest of the row either.
    """
    prompt = dict.fromkeys((*(one.content for one in item.record.messages), item.content))
    spellings = {
        text[one.start : one.end]: one.kind for text in prompt for one in personal_passages(text)
    }
    beside = {
        text[one.start : one.end]: one.kind
        for text in _texts_beside(item)
        for one in personal_passages(text)
    }
    things = "\n".join(map(without_personal_data, prompt)) if beside else ""
    return {text: kind for text, kind in beside.items() if text not in things} | spellings


def _texts_beside(item: Item) -> Iterator[str]:
    """Yield every text of a row but its prompt."""
    if isinstance(item.record, Demonstration):
        yield item.record.response
    yield item.record.id
    for problem in _golds(item):
        yield from _leaves(_gold_value(problem.answer))
    yield from item.facets.values()


def _golds(item: Item) -> list[Problem]:
    """Return the problems of an item whose gold answers it carries."""
    own = [item.record] if isinstance(item.record, Problem) else []
    return own + ([item.answers] if item.answers else [])


def _masked(item: Item, spellings: Mapping[str, PersonalKind]) -> Item:
    """Mask prompt, response and gold answer alike."""
    record = item.record
    if isinstance(record, Problem):
        record = _masked_problem(record, spellings)
    else:
        response = replace_spellings(record.response, spellings)
        update = {
            "id": _masked_id(record.id, spellings),
            "messages": _masked_messages(record.messages, spellings),
            "response": response,
        }
        record = record.model_copy(update=update)
    answers = item.answers and _masked_problem(item.answers, spellings)
    content = replace_spellings(item.content, spellings)
    facets = {name: replace_spellings(value, spellings) for name, value in item.facets.items()}
    return replace(item, record=record, content=content, answers=answers, facets=facets)


def _masked_problem(problem: Problem, spellings: Mapping[str, PersonalKind]) -> Problem:
    messages = _masked_messages(problem.messages, spellings)
    answer = _masked_gold(problem.answer, spellings)
    number = _masked_id(problem.id, spellings)
    return problem.model_copy(update={"id": number, "messages": messages, "answer": answer})


def _masked_id(name: str, spellings: Mapping[str, PersonalKind]) -> str:
    """Mask an id, and keep those of two people apart by a digest."""
    masked = replace_spellings(name, spellings)
    return name if masked == name else f"{masked}-{sha256_bytes(name.encode())[:16]}"


def _masked_messages(
    messages: Sequence[Message], spellings: Mapping[str, PersonalKind]
) -> tuple[Message, ...]:
    return tuple(
        message.model_copy(update={"content": replace_spellings(message.content, spellings)})
        for message in messages
    )


def _gold_value(answer: str) -> object:
    """Read a gold answer; one that is not canonical JSON is text, such as 1.50, NaN or a sentence.

    Verifiers of a user's own may read golds of any form, and written again 1.50 would be 1.5.
    """
    try:
        value = json.loads(answer)
        return value if canonical_json(value).decode() == answer else answer
    except ValueError:  # no JSON, NaN, or an integer of more digits than Python reads
        return answer


def _masked_gold(answer: str, spellings: Mapping[str, PersonalKind]) -> str:
    value = _gold_value(answer)
    if value == answer:
        return replace_spellings(answer, spellings)
    return canonical_json(_masked_value(value, spellings)).decode()


def _leaves(value: object) -> Iterator[str]:
    """Yield every text and whole number of a gold answer; its keys are words of its verifier."""
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield str(value)


def _masked_value(value: object, spellings: Mapping[str, PersonalKind]) -> object:
    if isinstance(value, list):
        return [_masked_value(one, spellings) for one in value]
    if isinstance(value, dict):
        return {key: _masked_value(one, spellings) for key, one in value.items()}
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    masked = replace_spellings(str(value), spellings)
    return value if masked == str(value) else masked
