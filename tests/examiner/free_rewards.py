"""What texts that do no task earn, on every family of the sample world and of public sets.

    python -m tests.examiner.free_rewards DATA --out FILE

The texts are those of `tasks/gym/degenerate.py`, which an evaluation scores beside a model; the
public sets are those of `data_schemas/public_sets.py`, read as curation reads them.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from data_schemas.public_sets import SETS
from data_schemas.rows import Problem, QuarantinedItem
from data_schemas.settings import Source
from tasks.curation.adapters.table import read_file
from tasks.curation.ingest import ingest, locate, raw_files
from tasks.curation.marketplace.drawing import DRAWERS, SCHOOL, draw_items
from tasks.gym import table
from tasks.gym.degenerate import MAX_PROBLEMS, TEXTS, free_scores, is_scored, spread
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tests.records import problem_of

SEED = 0
PUBLIC = 20
"""Problems of a public set."""
SILENT = "bfcl, where silence is right"


def draw_families(data: Path) -> Iterator[tuple[str, list[Problem]]]:
    """Yield each family with its problems, evenly spread."""
    for domain in DRAWERS | SCHOOL:
        rng = random.Random(SEED)
        items = draw_items(rng, domain, problems=True)
        drawn = [next(items) for _ in range(MAX_PROBLEMS)]
        yield (
            f"sample world: {domain.value}",
            [
                problem_of(
                    item.prompt,
                    json.dumps(item.answer),
                    id=f"{domain.value}/{place}",
                    domain=domain,
                    language=item.language,
                    verifier=item.verifier,
                    source="sample",
                    source_row=str(place),
                )
                for place, item in enumerate(drawn)
            ],
        )
    families: dict[str, list[Problem]] = {}
    for problem in read_public(data):
        names = [f"{problem.source}: {problem.verifier}"]
        if problem.verifier == "bfcl_calls" and not json.loads(problem.answer)["calls"]:
            names.append(SILENT)
        for name in names:
            families.setdefault(name, []).append(problem)
    for name, problems in sorted(families.items()):
        yield name, spread(problems, PUBLIC)


def read_public(data: Path) -> Iterator[Problem]:
    """Read the public sets that are in a folder; the ones without a verdict here are left out."""
    parts = [entry.removeprefix("evaluation:").partition("=") for entry in SETS]
    found = [
        Source(adapter=adapter, path=str(data / path))
        for adapter, _, path in parts
        if (data / path).exists()
    ]
    with tempfile.TemporaryDirectory() as folder:
        ingest(found, SEED, Path(folder))
        for file in raw_files(Path(folder)):
            path = locate(Path(folder), file)
            for items in read_file(file.adapter, file.source, path, file.mapping):
                if not isinstance(items, QuarantinedItem):
                    records = (item.record for item in items)
                    yield from (
                        one for one in records if isinstance(one, Problem) and is_scored(one)
                    )


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
        origin = evidence_file.origin(command, "tasks.gym.table", "tasks.gym.degenerate")
        found = {**origin, "texts": len(TEXTS), "rows": rows}
        options.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    run(main)
