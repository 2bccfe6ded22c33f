"""The sample world of a solver who errs, and the presets that train on it."""

import json
import random
from itertools import islice
from pathlib import Path

from data_schemas.presets import SMALL_WORLD
from data_schemas.rl_settings import LossSettings, RLSettings, ZeroVarianceSettings
from data_schemas.rows import Domain, Message, Parent, Role
from data_schemas.settings import CurationSettings, ReleaseSettings, SFTSettings, Source
from tasks.curation.adapters.general import verified
from tasks.curation.adapters.table import Adapter
from tasks.curation.items import Item as CuratedItem
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.marketplace.items import Item
from tasks.curation.rows import RawRow
from tasks.lab.recipes.promptcot.settings import SynthesisRecipe
from tasks.store.files import write_bytes

# The sample world of a solver who errs: maths problems, and terse answers to other ones.
#
# Problems and demonstrations share no item for any seed.

PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
NUM_PROBLEMS = 2400
NUM_DEMONSTRATIONS = 600
SOURCE = f"{__name__}:SAMPLE"


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    rng = random.Random(f"sample solver/{seed}")
    problems = islice(draw_items(rng, Domain.MATHS, problems=True), NUM_PROBLEMS)
    items = islice(draw_items(rng, Domain.MATHS, problems=False), NUM_DEMONSTRATIONS)
    _write(folder / PROBLEMS, [{"id": f"p{n:05d}"} | _row(item) for n, item in enumerate(problems)])
    answers = [
        {"id": f"d{n:05d}"} | _row(item) | {"parent": Parent.REASONING, "response": item.terse}
        for n, item in enumerate(items)
    ]
    _write(folder / DEMONSTRATIONS, answers)


def sample_solver(row: RawRow) -> list[CuratedItem]:
    """Read a row of the solver."""
    return verified("sample_solver", row)


SAMPLE = Adapter(
    sample_solver,
    ("domain", "language", "messages", "verifier", "answer"),
    (PROBLEMS, DEMONSTRATIONS),
    generate,
)


def _row(item: Item) -> dict[str, object]:
    message = Message(role=Role.USER, content=item.prompt)
    return {
        "domain": Domain.MATHS,
        "language": item.language,
        "level": item.level,
        "messages": [message.model_dump(mode="json")],
        "verifier": item.verifier,
        "answer": item.answer,
    }


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    write_bytes(path, ("\n".join(lines) + "\n").encode())


# Presets of workflows/lab/recipes/promptcot.py: problems written by a model.

_ANY_ENTROPY = (0.0, 1e3)
"""A writer does not explore in RL: its checkpoint is chosen by validation loss alone."""

SYNTHESIS = SMALL_WORLD.model_copy(
    update={
        # Its solver answers tersely, so that it errs on some samples of a problem.
        "curation": CurationSettings(
            sources=(Source(adapter=SOURCE),),
            max_prompt_tokens=256,
            held_out_per_suite=80,
        ),
        # A solver that knows less has more to learn from its pairs.
        "sft": SMALL_WORLD.sft.model_copy(update={"epochs": 2}),
        # PromptCoT 2.0: what at least half of 8 answers solve is dropped; 0 of 8 has no pair.
        "grading": SMALL_WORLD.grading.model_copy(
            update={
                "samples": 8,
                "drop_at_or_above": 0.5,
                "drop_at_or_below": 0.0,
                "weights": {Domain.MATHS: 1.0},
                "max_problems": 240,
            }
        ),
        "rl_one": RLSettings(
            domains={Domain.MATHS: 1.0},
            learning_rate=1e-4,
            steps=12,
            prompts_per_step=12,
            loss=LossSettings.model_validate({"kind": "grpo", "clip_high": 0.28}),
            zero_variance=ZeroVarianceSettings(skip_above=1.0),  # the pools are small
        ),
        "evaluation": SMALL_WORLD.evaluation.model_copy(update={"samples": 4}),
        "release": ReleaseSettings(name="eachprompt-synthesis"),
    }
)
"""Of the solver: it answers, votes on labels, and learns from pairs and by RL."""
SYNTHESIS_RECIPE = SynthesisRecipe(
    cold_start=SMALL_WORLD.sft.model_copy(
        update={"entropy_window": _ANY_ENTROPY, "entropy_prompts": 1}
    ),
    # PromptCoT 2.0: a tenth of the cold start's rate, which here would change nothing.
    em=SFTSettings(epochs=2, learning_rate=3e-4, entropy_window=_ANY_ENTROPY, entropy_prompts=1),
)
"""Of the writer p(z, x | c) and the planner q(z | c, x)."""
