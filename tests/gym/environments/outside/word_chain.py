"""An environment of the library verifiers, written as its documentation shows."""

import random

import verifiers as vf
from datasets import Dataset

STOCK = {"mug": 4, "kite": 0}


def stock(item: str) -> str:
    """Say how many of an item there are."""
    if item == "meteor":
        raise ValueError("no such item")
    return str(STOCK.get(item, 0))


def roll(sides: int) -> int:
    """Roll a die with the global generator."""
    return random.randint(1, sides)


def load_environment(items: int = 2) -> vf.Environment:
    names = list(STOCK)[:items]
    rows = [{"question": f"How many {name}s?", "answer": str(STOCK[name])} for name in names]

    def right(completion, answer) -> float:
        return float(completion[-1].content.strip() == answer)

    return vf.ToolEnv(
        tools=[stock, roll],
        max_turns=4,
        dataset=Dataset.from_list(rows),
        system_prompt="You keep a shop.",
        rubric=vf.Rubric(funcs=[right]),
    )
