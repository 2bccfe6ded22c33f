"""The verifiers without the rooms around them, as a project takes them that only scores answers."""

import shutil
import sys
from pathlib import Path

from tests.processes import run_process

ROOT = Path(__file__).parents[2]
TAKEN = ("data_schemas", "tasks/gym", "tasks/algorithms", "tasks/errors.py", "tasks/plugins.py")
SCORE = """
from data_schemas.rows import Problem
from tasks.gym.degenerate import free_scores
from tasks.gym.scoring.canaries import check_canaries
from tasks.gym.table import close, score_batch

problem = Problem.model_validate(
    dict(
        id="mine/1", domain="maths", language="en", messages=[dict(role="user", content="3 + 4?")],
        verifier="final_answer", answer='{"value": "7"}', source="mine", source_row="0",
    )
)
right, wrong = score_batch([problem, problem], ["The answer is 7.", "8"])
assert (1.0, 0.0) == (right.score, wrong.score)
assert free_scores([problem])[0].text == "constant '7'"
check_canaries()
close()
print("scored")
"""


def test_verifiers_score_without_store_models_and_engines(tmp_path):
    for name in TAKEN:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(exist_ok=True)
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, target)

    done = run_process(
        [sys.executable, "-c", SCORE],
        cwd=tmp_path,
        variables={"PYTHONPATH": str(tmp_path)},
        check=False,
    )

    assert "scored" == done.stdout.strip(), done.stderr[-2000:]
