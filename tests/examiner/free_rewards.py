"""What texts that do no task earn, on every family of the sample world and of public sets.

    python -m tests.examiner.free_rewards DATA --out FILE

The texts are those of `tasks/gym/degenerate.py`, which an evaluation scores beside a model.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from data_schemas.prompts import Message, Problem, Role
from tasks.curation.marketplace.drawing import DRAWERS, draw_items
from tasks.gym import table
from tasks.gym.degenerate import MAX_PROBLEMS, TEXTS, free_scores, spread
from tasks.platform.command_line import run
from tests.examiner import sources

SEED = 0
PUBLIC = 20
"""Problems of a public set."""


def draw_families(data: Path) -> Iterator[tuple[str, list[Problem]]]:
    """Yield each family with its problems, evenly spread."""
    for domain in DRAWERS:
        rng = random.Random(SEED)
        items = draw_items(rng, domain, problems=True)
        drawn = [next(items) for _ in range(MAX_PROBLEMS)]
        yield (
            f"sample world: {domain.value}",
            [
                Problem(
                    id=f"{domain.value}/{place}",
                    domain=domain,
                    language=item.language,
                    messages=(Message(role=Role.USER, content=item.prompt),),
                    verifier=item.verifier,
                    answer=json.dumps(item.answer),
                    source="sample",
                    source_row=str(place),
                )
                for place, item in enumerate(drawn)
            ],
        )
    mixed: dict[str, list[Problem]] = {}
    for name, read in sources.READERS.items():
        by_source: dict[str, list[Problem]] = {}
        for question in read(data):
            by_source.setdefault(question.problem.source, []).append(question.problem)
        for source, problems in by_source.items():
            mixed.setdefault(source, []).extend(spread(problems, PUBLIC))
            yield f"{name}: {source}", spread(problems, PUBLIC)
    # Half of these call nothing: what silence earns where problems that need a call are among them.
    yield "bfcl and bfcl_silent, mixed", mixed.get("bfcl", [])


def measure(data: Path) -> list[dict[str, object]]:
    """Return the best text of every family."""

    console = Console(width=120)
    rows: list[dict[str, object]] = []
    for name, problems in draw_families(data):
        for best in free_scores(problems):
            rows.append({"family": name, **best.model_dump(exclude={"suite"})})
            console.print(f"{name} | {best.text} | {best.score:.3f} | {best.accuracy:.3f}")
    table.close()
    return rows


def main(arguments: Sequence[str]) -> None:
    """Measure, write and print; see --help."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with one sub-folder per data set")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    rows = measure(options.data)
    if options.out:
        command = "python -m tests.examiner.free_rewards DATA"
        found = {"command": command, "texts": len(TEXTS), "rows": rows}
        options.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    run(main)
