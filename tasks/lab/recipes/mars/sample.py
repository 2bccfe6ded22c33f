"""The sample world of several agents: maths problems, and what solver, verifier, corrector say.

`problems.jsonl` contains maths items to check against; `demonstrations.jsonl` contains other items,
each with the response of one agent. The solver answers tersely, so that it errs on some samples of
a problem. Verifier and corrector work digit by digit, so that they know something that the solver
does not; half of the solutions that they are shown are wrong, and half of the findings too.

Problems and demonstrations share no item for any seed, and no item is shown to two agents.
"""

import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from data_schemas.rows import Domain, Message, Parent, Role
from tasks.curation.adapters.table import Adapter
from tasks.curation.adapters.verified import verified
from tasks.curation.items import Item as CuratedItem
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.marketplace.items import MarketItem, respond
from tasks.curation.marketplace.maths import column_addition
from tasks.curation.rows import RawRow
from tasks.gym.table import VERIFIERS
from tasks.lab.recipes.mars import correctness
from tasks.lab.recipes.mars.inputs import corrector_input, verifier_input
from tasks.lab.recipes.mars.settings import Agent
from tasks.store.files import write_bytes

SOURCE = f"{__name__}:SAMPLE"
"""Its name in settings."""
PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
NUM_PROBLEMS = 2400
SHOWN = {Agent.SOLVER: 600, Agent.VERIFIER: 900, Agent.CORRECTOR: 400}
"""Demonstrations per agent."""


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    rng = random.Random(f"sample agents/{seed}")
    items = draw_items(rng, Domain.MATHS, problems=True)
    problems = [_row(item, _question(item)) for item in islice(items, NUM_PROBLEMS)]
    taught = draw_items(rng, Domain.MATHS, problems=False)
    demonstrations = [
        _demonstration(rng, agent, item)
        for agent, count in SHOWN.items()
        for item in islice(taught, count)
    ]
    _write(folder / PROBLEMS, "p", problems)
    _write(folder / DEMONSTRATIONS, "d", demonstrations)


def _question(item: MarketItem) -> tuple[Message, ...]:
    return (Message(role=Role.USER, content=item.prompt),)


def _row(item: MarketItem, messages: tuple[Message, ...]) -> dict[str, object]:
    return {
        "domain": Domain.MATHS,
        "language": item.language,
        "level": item.level,
        "messages": [message.model_dump(mode="json") for message in messages],
        "verifier": item.verifier,
        "answer": item.answer,
    }


def _demonstration(rng: random.Random, agent: Agent, item: MarketItem) -> dict[str, object]:
    """Write one demonstration of an agent."""
    parent = {"parent": Parent.REASONING}
    if agent == Agent.SOLVER:
        return _row(item, _question(item)) | parent | {"response": item.terse}
    right = rng.random() < 0.5
    solution = item.terse if right else item.hasty
    work, answer = _worked(item), item.solution if right else item.blunder
    if agent == Agent.VERIFIER:
        verdict = "Correct" if right else "Wrong"
        response = respond(f"{work}; {answer}", f"It is {item.solution}.\nCorrectness: {verdict}")
        row = _row(item, verifier_input(_question(item), solution))
        return (
            row
            | parent
            | {
                "verifier": correctness.NAME,
                "answer": {"correct": right},
                "response": response,
            }
        )
    result = item.solution if rng.random() < 0.5 else item.blunder
    messages = corrector_input(_question(item), solution, respond(work, f"It is {result}."))
    return _row(item, messages) | parent | {"response": respond(work, item.solution)}


def _worked(item: MarketItem) -> str:
    """Return the careful steps, and a three-digit sum in columns."""
    *steps, last = item.steps.split("; ")
    left, plus, right = last.partition("=")[0].partition("+")
    if item.level != 5 or not plus:
        return item.steps
    return "; ".join([*steps, column_addition(int(left), int(right))])


def _write(path: Path, prefix: str, rows: list[dict[str, object]]) -> None:
    write_bytes(path, ("\n".join(_lines(prefix, rows)) + "\n").encode())


def _lines(prefix: str, rows: list[dict[str, object]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield json.dumps({"id": f"{prefix}{number:05d}", **row}, ensure_ascii=False)


def sample_agents(row: RawRow) -> list[CuratedItem]:
    """Read a row of solver, verifier or corrector."""
    return verified("sample_agents", row, VERIFIERS)


SAMPLE = Adapter(
    sample_agents,
    ("domain", "language", "messages", "verifier", "answer"),
    (PROBLEMS, DEMONSTRATIONS),
    generate,
)
