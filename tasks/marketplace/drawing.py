"""Draw items of every domain: the one door through which both users come."""

import random
from collections.abc import Callable, Iterator

from data_schemas.prompts import Domain
from tasks.marketplace import choice, coding, extraction, instruction, maths, open_text, tool_use
from tasks.marketplace.items import Item, is_asked

LEVELS = (1, 2, 3, 4, 5)
DRAWERS: dict[Domain, Callable[[random.Random, int], Item]] = {
    Domain.MATHS: maths.draw_maths,
    Domain.CODE: coding.draw_code,
    Domain.INSTRUCTION: instruction.draw_instruction,
    Domain.CHOICE: choice.draw_choice,
    Domain.EXTRACTION: extraction.draw_extraction,
    Domain.TOOL_USE: tool_use.draw_tool_use,
    Domain.OPEN_TEXT: open_text.draw_open_text,
}


def draw_items(rng: random.Random, domain: Domain, *, asked: bool) -> Iterator[Item]:
    """Yield items of one domain without end, levels in turn, no prompt twice.

    Args:
        rng: all chance comes from here.
        domain: which work.
        asked: True for prompts that may be problems, False for those that may be taught.
    """
    seen: set[str] = set()
    while True:
        for level in LEVELS:
            # A level whose space is nearly used up is skipped rather than waited for.
            for _ in range(200):
                item = DRAWERS[domain](rng, level)
                if item.prompt not in seen and is_asked(item.prompt) == asked:
                    seen.add(item.prompt)
                    yield item
                    break
