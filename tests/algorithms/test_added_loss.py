"""A loss is added by a file and a line: the names, the listing, the check and a plan know it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tasks

ROOT = Path(tasks.__file__).parents[1]
FILE = '''"""GRPO with one width."""

from tasks.algorithms.losses.grpo import GRPO


class Even(GRPO):
    """The same width on both sides."""

    clip_low: float = 0.3
    clip_high: float = 0.3
'''
USE = """
import sys
from data_schemas.settings import PipelineSettings
from tasks.settings import early

settings = PipelineSettings.model_validate({"rl_one": {"loss": {"kind": "even", "clip_high": 0.4}}})
early.require_names(settings)
assert "torch" not in sys.modules

from tasks.algorithms.losses import table
from tasks.settings.listing import rows_of
from tasks.settings.options import with_own_code

with_own_code(settings)
rows = {row.name: row.value for row in rows_of(settings)}
print(table.find(settings.rl_one.loss).clip_range, rows["rl_one.loss.clip_low"])
"""


@pytest.mark.slow
def test_a_built_in_loss_is_a_file_and_a_line(tmp_path):
    for folder in ("tasks", "data_schemas", "workflows"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "lab")
        )
    losses = tmp_path / "tasks/algorithms/losses"
    (losses / "even.py").write_text(FILE)
    names = (losses.parent / "names.py").read_text()
    line = 'LOSSES = {\n    "even": "tasks.algorithms.losses.even:Even",'
    (losses.parent / "names.py").write_text(names.replace("LOSSES = {", line))

    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stderr[-2000:]
    assert "(0.3, 0.4) 0.3" == done.stdout.splitlines()[-1]
