"""The notebook of the first evening: its settings are settings, and its cells run in order."""

import json
import os
import sys
from pathlib import Path

import pytest

from data_schemas import presets
from tests.processes import run_process

ROOT = Path(__file__).parents[1]
NOTEBOOK = json.loads((ROOT / "docs" / "first_gpu_evening.ipynb").read_text())
CELLS = ["".join(one["source"]) for one in NOTEBOOK["cells"] if one["cell_type"] == "code"]
SETTINGS, RUN = CELLS[:3], CELLS[3:]
FEW = {
    "curation": {
        "sources": [{"adapter": "gsm8k", "path": "train.jsonl", "limit": 60}],
        "held_out_per_suite": 8,
    },
    "sft": {"epochs": 1, "entropy_prompts": 4},
    "grading": {"samples": 2, "max_problems": 12},
    "rl_one": {"steps": 2, "prompts_per_step": 4, "group_size": 4},
    "evaluation": {"samples": 1},
}


def run(folder: Path, cells: list[str], **variables: str) -> str:
    """Run cells as one program in a folder, and return what they print."""
    (folder / "tmp").mkdir()
    done = run_process(
        [sys.executable, "-c", "\n\n".join(cells)],
        cwd=folder,
        variables={"HOME": str(folder), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT)}
        | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        | variables,
    )
    return done.stdout


@pytest.mark.parametrize("size", ["tiny", "smollm2", "one_gpu"])
def test_every_size_is_a_file_of_settings(size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(tmp_path, SETTINGS, EVENING_SIZE=size)

    settings = presets.load("evening.yaml")
    assert ("evening", 0) == (settings.release.name, settings.rl_two.steps)


def test_a_row_that_is_made_is_read_with_its_worked_solution(tmp_path):
    run(tmp_path, SETTINGS)
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]

    assert 600 == len(rows)
    for row in rows:
        steps, _, gold = row["answer"].rpartition("\n#### ")
        assert steps.rpartition(">>")[2].startswith(f"{gold} ")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_cells_run_in_order_and_show_the_reward_of_every_step(tmp_path):
    printed = run(tmp_path, [*SETTINGS, *RUN], EVENING_CHANGES=json.dumps(FEW))

    assert ["step   1", "step   2"] == [
        line[:8] for line in printed.splitlines() if line.startswith("step ")
    ]
    assert "gain over base" in printed
