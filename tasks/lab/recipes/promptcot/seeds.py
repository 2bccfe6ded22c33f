"""The cold start: demonstrations with a teacher's plan, and problems without one.

All are teaching material, never problems that are held out.
"""

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from data_schemas.arrow import write_table
from data_schemas.rows import DEMONSTRATIONS, Demonstration, Domain, Parent
from tasks.curation.marketplace.drawing import draw_items
from tasks.errors import DataError
from tasks.lab.recipes.promptcot.prompts import demonstrate
from tasks.lab.recipes.promptcot.records import FRESH, POOL, WordedProblem
from tasks.lab.recipes.promptcot.wording import parse, teach_plan

NUM_TAUGHT = 600
"""Problems with a plan."""
NUM_POOL = 400
"""Problems without: EM finds their rationales."""
NUM_FRESH = 100
"""Problems that nothing is trained on."""


def begin(seed: int, out: Path) -> dict[str, float | int | str]:
    """Write demonstrations, pool and fresh problems; return their counts.

    Raises:
        DataError: a drawn problem is not in the wording that the parser reads.
    """
    rng = random.Random(f"synthesis/{seed}")
    items = islice(draw_items(rng, Domain.MATHS, problems=False), NUM_TAUGHT + NUM_POOL + NUM_FRESH)
    rows, demonstrations = [], []
    for number, item in enumerate(items):
        result = parse(item.prompt)
        if result is None:
            raise DataError(f"{item.prompt!r} is not in the wording that wording.parse reads")
        row = WordedProblem(id=f"s{number:05d}", concepts=result.concepts.text, problem=item.prompt)
        rows.append(row)
        if number < NUM_TAUGHT:
            plan = teach_plan(rng, result)
            demonstrations += [
                demonstrate(row, plan, parent) for parent in (Parent.WRITER, Parent.PLANNER)
            ]
    pool, fresh = rows[NUM_TAUGHT:-NUM_FRESH], rows[-NUM_FRESH:]
    write_table(out / DEMONSTRATIONS, Demonstration, demonstrations)
    _write(out, pool, fresh)
    return {"taught": NUM_TAUGHT, "pool": len(pool), "fresh": len(fresh)}


def _write(out: Path, pool: Sequence[WordedProblem], fresh: Sequence[WordedProblem]) -> None:
    write_table(out / POOL, WordedProblem, pool)
    write_table(out / FRESH, WordedProblem, fresh)
