"""The pretraining corpus of the shipped base model, drawn from the marketplace.

Four kinds of text give the base the skills without the project's response format: notes
(facts without a question), worked questions in plain text, and small shares of small talk and
of worked questions in chat turns. No text contains a think tag. All prompts are teaching
material (`tasks.curation.marketplace.items.is_problem_prompt` is False).
"""

import json
import random
from collections.abc import Iterator
from typing import cast

from data_schemas.rows import Domain
from tasks.curation.marketplace.drawing import DRAWERS, LEVELS
from tasks.curation.marketplace.items import MarketItem, compact, is_problem_prompt
from tasks.curation.marketplace.maths import addition, change_of_hundred
from tasks.curation.marketplace.words import (
    BRANDS,
    CATEGORIES,
    COLOURS,
    ENGLISH_GOODS,
    LANGUAGES,
    NAMES,
    plural,
)

_NOTE_SHARE = 0.15
_TALK_SHARE = 0.04
_CHAT_SHARE = 0.04
"""Share of the worked questions that are written as chat turns."""
_DOMAINS = tuple(DRAWERS)
_WEIGHTS = {
    Domain.MATHS: 1.5,
    Domain.CODE: 1.0,
    Domain.INSTRUCTION: 1.5,
    Domain.CHOICE: 2.0,
    Domain.EXTRACTION: 2.0,
    Domain.TOOL_USE: 1.0,
    Domain.OPEN_TEXT: 1.5,
}


def documents(seed: int) -> Iterator[str]:
    """Yield documents without end; the same seed gives the same documents."""
    rng = random.Random(f"corpus/{seed}")
    weights = [_WEIGHTS[domain] for domain in _DOMAINS]
    while True:
        kind = rng.random()
        if kind < _NOTE_SHARE:
            yield rng.choice(_NOTES)(rng)
            continue
        if kind < _NOTE_SHARE + _TALK_SHARE:
            yield _chat_turns(*_small_talk(rng))
            continue
        item = DRAWERS[rng.choices(_DOMAINS, weights)[0]](rng, rng.choice(LEVELS))
        if is_problem_prompt(item.prompt):
            continue
        if rng.random() < _CHAT_SHARE:
            yield _chat_turns(item.prompt, f"{item.steps}\n{_plain(item)}")
        else:
            yield _worked_question(rng, item)


def _worked_question(rng: random.Random, item: MarketItem) -> str:
    """Write a question and its answer as plain text, in three of four cases with steps."""
    if rng.random() < 0.75:
        return f"Q: {item.prompt}\nWork: {item.steps}\nA: {_plain(item)}\n"
    return f"Q: {item.prompt}\nA: {_plain(item)}\n"


def _plain(item: MarketItem) -> str:
    """Return the answer outside of a chat, where a call is the record of it and has no tags."""
    if item.domain is not Domain.TOOL_USE:
        return item.solution
    calls = cast("list[dict[str, object]]", item.answer["calls"])
    return "\n".join(map(compact, calls))


def _chat_turns(question: str, reply: str) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{reply}<|im_end|>\n"


def _small_talk(rng: random.Random) -> tuple[str, str]:
    """Draw a question that needs no skill, and a polite reply."""
    good, colour = plural(rng.choice(ENGLISH_GOODS)), rng.choice(COLOURS)
    brand, name = rng.choice(BRANDS), rng.choice(NAMES)
    return rng.choice(
        (
            (f"Do you sell {good}?", f"Yes, {colour} {good} from {brand}."),
            (f"Hello, I am {name}.", f"Hello {name}, welcome."),
            (f"Are the {brand} {good} {colour}?", f"Yes, they are {colour}."),
            ("Thank you.", f"You are welcome, {name}."),
        )
    )


def _addition_note(rng: random.Random) -> str:
    return addition(rng.randint(1, 99), rng.randint(1, 99)) + "\n"


def _change_note(rng: random.Random) -> str:
    return change_of_hundred(rng.randint(11, 89)) + "\n"


def _product_note(rng: random.Random) -> str:
    left, right = rng.randint(1, 9), rng.choice((rng.randint(1, 9), 10 * rng.randint(1, 9)))
    return f"{left}*{right}={left * right}\n"


def _dictionary_note(rng: random.Random) -> str:
    """Write a category in two languages, or a good and its category."""
    one, two = rng.sample(LANGUAGES, 2)
    index = rng.randrange(len(CATEGORIES))
    if rng.random() < 0.3:
        return f"{one.categories[index]} = {two.categories[index]} = {CATEGORIES[index]}\n"
    good = rng.choice(one.goods[index])
    return f"{good}: {CATEGORIES[index]}, {one.categories[index]}\n"


def _offer_note(rng: random.Random) -> str:
    low, high = sorted(rng.sample(range(10, 100), 2))
    first, second = rng.sample(BRANDS, 2)
    return f"{low} {first} < {high} {second}\n"


def _record_note(rng: random.Random) -> str:
    good = rng.choice(ENGLISH_GOODS)
    record = {"item": good, "many": plural(good), "brand": rng.choice(BRANDS)}
    return json.dumps(record) + "\n"


_NOTES = (
    _addition_note,
    _addition_note,
    _change_note,
    _product_note,
    _dictionary_note,
    _dictionary_note,
    _offer_note,
    _record_note,
)
