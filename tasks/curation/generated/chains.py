"""Sums of several steps, held out by template and by level: what RL generalises to, apart from SFT.

A template is an order of operations in words that all templates share; a level is its number of
steps. `sample_chains` has problems and demonstrations of some templates and levels. Three more
sources, which are evaluated only, ask other templates, more steps, and both. An answer has every
intermediate result beside the value, and a demonstration writes all of them down.
"""

import json
import random
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path

from data_schemas.rows import Domain, Parent
from tasks.curation.marketplace.items import is_problem_prompt, respond
from tasks.curation.marketplace.maths import addition, change_of_hundred
from tasks.curation.marketplace.words import ENGLISH_GOODS, plural
from tasks.store.files import write_bytes

PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
TAUGHT = "sample_chains"
NUM_PROBLEMS, NUM_DEMONSTRATIONS, NUM_HELD_OUT = 600, 800, 80

TEMPLATES: dict[str, Callable[[int], str]] = {
    "basket": lambda steps: f"P{'S' * (steps - 1)}",
    "change": lambda steps: f"{'S' * steps}C",
    "mixed": lambda steps: f"SP{'S' * (steps - 2)}",
    "basket_change": lambda steps: f"P{'S' * (steps - 2)}C",
    "two_baskets": lambda steps: f"P{'S' * (steps - 3)}P",
}
"""Operations by the number of steps: P several goods at a price, S a single one, C the change."""
_SEEN, _UNSEEN = ("basket", "change", "mixed"), ("basket_change", "two_baskets")
CELLS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    TAUGHT: (_SEEN, (2, 3)),
    "sample_chains_template": (_UNSEEN, (3,)),
    "sample_chains_level": (_SEEN, (4,)),
    "sample_chains_both": (_UNSEEN, (4,)),
}
"""Templates and levels of every source."""
HELD_OUT = tuple(source for source in CELLS if source != TAUGHT)
ABOUT = {
    source: f"the generated sums of {' or '.join(map(str, levels))} steps ({', '.join(templates)})"
    for source, (templates, levels) in CELLS.items()
}


def generate(source: str, seed: int, folder: Path) -> None:
    """Write the problems of a source, and demonstrations of the one that is trained on.

    Args:
        source: a key of CELLS.
        seed: of everything drawn; the same one gives the same bytes.
        folder: exists or is made.
    """
    rng = random.Random(f"{source}/{seed}")
    amount = NUM_PROBLEMS if source == TAUGHT else NUM_HELD_OUT
    _write(folder / PROBLEMS, _draw(rng, source, amount))
    if source == TAUGHT:
        demonstrations = _draw(rng, source, NUM_DEMONSTRATIONS, problems=False)
        _write(folder / DEMONSTRATIONS, demonstrations)


GENERATORS = {source: partial(generate, source) for source in CELLS}


def _draw(
    rng: random.Random, source: str, amount: int, *, problems: bool = True
) -> list[dict[str, object]]:
    """Draw rows with different prompts: templates and levels in turn."""
    templates, levels = CELLS[source]
    rows: dict[str, dict[str, object]] = {}
    turns = cycle([(template, level) for level in levels for template in templates])
    while len(rows) < amount:
        template, level = next(turns)
        prompt, steps, results = _draw_chain(rng, TEMPLATES[template](level))
        while prompt in rows or is_problem_prompt(prompt) != problems:
            prompt, steps, results = _draw_chain(rng, TEMPLATES[template](level))
        row: dict[str, object] = {
            "id": f"{template}-{level}-{'p' if problems else 'd'}{len(rows):04d}",
            "domain": Domain.MATHS,
            "language": "en",
            "level": level,
            "prompt": prompt,
            "verifier": "final_answer",
            "answer": {"value": str(results[-1]), "chain": [str(result) for result in results]},
        }
        if not problems:
            response = respond("; ".join(steps), str(results[-1]))
            row |= {"parent": Parent.REASONING, "response": response}
        rows[prompt] = row
    return list(rows.values())


def _draw_chain(rng: random.Random, operations: str) -> tuple[str, list[str], list[int]]:
    """Draw a chain: its prompt, the text of every step, and the result of every step."""
    goods = rng.sample(ENGLISH_GOODS, len(operations.removesuffix("C")))
    basket: list[str] = []
    steps: list[str] = []
    results: list[int] = []
    total = 0
    for operation, good in zip(operations, goods, strict=False):
        price = rng.randint(11, 29)
        basket.append(f"{good} {price}")
        if operation == "P":
            count, each = rng.randint(2, 6), rng.randint(2, 6)
            price = count * each
            basket[-1] = f"{count} {plural(good)} at {each}"
            steps.append(f"{count}*{each}={price}")
            results.append(price)
        if total:
            steps.append(addition(total, price))
            results.append(total + price)
        total += price
    if not operations.endswith("C"):
        return f"{', '.join(basket)}. Total?", steps, results
    if total >= 100:
        return _draw_chain(rng, operations)
    steps.append(change_of_hundred(total))
    return f"{', '.join(basket)}. Pay 100. Change?", steps, [*results, 100 - total]


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    write_bytes(path, ("\n".join(lines) + "\n").encode())
