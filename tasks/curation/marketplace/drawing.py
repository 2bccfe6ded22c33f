"""Draw items of every domain; used by curation and foundation."""

import random
from collections.abc import Callable, Iterator

from data_schemas.rows import Domain
from tasks.curation.marketplace import (
    choice,
    coding,
    extraction,
    general,
    instruction,
    maths,
    open_text,
    science,
    tool_use,
)
from tasks.curation.marketplace.items import MarketItem, is_problem_prompt

LEVELS = (1, 2, 3, 4, 5)
DRAWERS: dict[Domain, Callable[[random.Random, int], MarketItem]] = {
    Domain.MATHS: maths.draw_maths,
    Domain.CODE: coding.draw_code,
    Domain.INSTRUCTION: instruction.draw_instruction,
    Domain.CHOICE: choice.draw_choice,
    Domain.EXTRACTION: extraction.draw_extraction,
    Domain.TOOL_USE: tool_use.draw_tool_use,
    Domain.OPEN_TEXT: open_text.draw_open_text,
}
"""Domains of the sample world, and of the corpus that the shipped base model has seen."""
SCHOOL: dict[Domain, Callable[[random.Random, int], MarketItem]] = {
    Domain.SCIENCE: science.draw_science,
    Domain.GENERAL: general.draw_general,
}
"""Further domains of the papers' recipes, which the base model has not seen."""


def draw_items(rng: random.Random, domain: Domain, *, problems: bool) -> Iterator[MarketItem]:
    """Yield items of one domain without end: levels in turn, and no prompt twice.

    Args:
        rng: the only source of randomness.
        domain: of the items.
        problems: True for prompts of problems, False for prompts of teaching material.
    """
    draw = (DRAWERS | SCHOOL)[domain]
    prompts: set[str] = set()
    while True:
        for level in LEVELS:
            # A level without a new prompt in 200 draws is skipped.
            for _ in range(200):
                item = draw(rng, level)
                if item.prompt not in prompts and is_problem_prompt(item.prompt) == problems:
                    prompts.add(item.prompt)
                    yield item
                    break
