"""Training problems as questions of an evaluation, in which several models verify their answers.

The set has the problems where an evaluation looks for held-out ones, and nothing to train on.
"""

import shutil
from pathlib import Path

from data_schemas.arrow import read_table, write_table
from data_schemas.rows import DECISIONS, HELD_OUT, PROBLEMS, ROWS, Problem
from data_schemas.settings import GradingSettings
from tasks.curation.mixture import draw
from tasks.errors import DataError
from tasks.gym.environments.table import ENVIRONMENTS
from tasks.gym.table import is_judged


def pose(settings: GradingSettings, curated: Path, out: Path) -> dict[str, int]:
    """Write the questions, where their raw rows lie, and what people decided before.

    Problems are left out that take several turns, or whose verdict is a judge's opinion.

    Args:
        settings: which problems to draw, and how many.
        curated: folder of a curated set.
        out: empty folder.

    Raises:
        DataError: no problem is left.
    """
    problems = read_table(curated / PROBLEMS, Problem)
    verifiable = [
        one for one in problems if one.verifier not in ENVIRONMENTS and not is_judged(one)
    ]
    sample = draw(verifiable, settings.weights, settings.max_problems, settings.seed)
    if not sample:
        raise DataError(
            f"none of {len(problems)} training problems has an answer that models could doubt. "
            "Add other sources, or domains to grading.weights."
        )
    write_table(out / HELD_OUT, Problem, sample)
    # An evaluation learns its baselines from what is trained on: nothing is.
    write_table(out / PROBLEMS, Problem, [])
    for name in (ROWS, DECISIONS):
        if (curated / name).exists():
            shutil.copyfile(curated / name, out / name)
    return {"problems": len(problems), "asked": len(sample)}
