"""The whole pipeline at its smallest: 17 stages in a quarter of a minute, and a release.

24 sums, a random model of two layers, one step per phase; the gate is opened, because nothing is
learned. Whoever asks what becomes of a row or a kill on its way to a release starts here.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from data_schemas.machine_settings import merged_over
from data_schemas.reports import SLICE_KINDS
from data_schemas.settings import PipelineSettings
from tests.conftest import build_tiny_moe
from workflows.post_training import RunOutputs, post_training

MODEL = "models:/eachprompt-tiny@released"
_SHORT = {"max_new_tokens": 4}
_PHASE = _SHORT | {
    "steps": 1,
    "prompts_per_step": 2,
    "group_size": 2,
    # Of 4 rollouts, one text too short to tell its language is more than a tenth.
    "rewards": {"max_abstained_share": 0.9},
    "domains": {"maths": 1.0},
}


def rows(count: int = 24) -> list[dict[str, object]]:
    """Make sums: every row is a problem and a demonstration, of both parents in turn."""
    return [
        {
            "id": f"sum-{n}",
            "domain": "maths",
            "language": "en",
            "prompt": f"What is {n} plus {n * 7 % 5}?",
            "verifier": "final_answer",
            "answer": {"value": str(n + n * 7 % 5)},
            "response": f"<think>{n} + {n * 7 % 5}</think>{n + n * 7 % 5}",
            "parent": "reasoning" if n % 2 else "commerce",
        }
        for n in range(count)
    ]


def prepare(folder: Path, raw: Sequence[Mapping[str, object]] = ()) -> None:
    """Write the rows and the model that `settings` names."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in raw or rows()]
    (folder / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    build_tiny_moe(folder / "model")


def settings(folder: Path, changes: Mapping[str, object] | None = None) -> PipelineSettings:
    """Return the settings of a chain.

    Args:
        folder: that was prepared.
        changes: fields by group.
    """
    source = {"adapter": "prompt_jsonl", "path": str(folder / "rows.jsonl")}
    chosen = PipelineSettings.model_validate(
        {
            "base_model": str(folder / "model"),
            "curation": {"sources": [source], "held_out_per_suite": 4},
            "sft": {"epochs": 1, "entropy_prompts": 2},
            "grading": _SHORT | {"samples": 2, "max_problems": 8},
            "rl_one": _PHASE,
            "rl_two": _PHASE,
            "evaluation": _SHORT | {"samples": 1},
            "release": {
                "min_gain": -1.0,
                "may_lose": dict.fromkeys(SLICE_KINDS, 1.0),
                "max_truncated_share": 1.0,
            },
        }
    )
    return PipelineSettings.model_validate(merged_over(chosen, dict(changes or {})))


def run(chosen: PipelineSettings, home: Path) -> RunOutputs:
    """Run the chain in this process, with a home, a key and temporary files of its own."""
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    os.environ["HOME"] = str(home)  # Flyte's cache begins empty
    os.environ["TMPDIR"] = str(home / "tmp")
    return post_training(settings=chosen, store=str(home / "runs"))
