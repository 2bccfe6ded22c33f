"""A choice is added by a file and a line: the names, the listing, the check and its use know it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tasks

ROOT = Path(tasks.__file__).parents[1]
LOSS = '''"""GRPO with one width."""

from tasks.algorithms.losses.grpo import GRPO


class Even(GRPO):
    """The same width on both sides."""

    clip_low: float = 0.3
    clip_high: float = 0.3
'''
TERM = '''"""Weights of a half."""

from pydantic import Field

from tasks.algorithms.terms.protocol import StepEffect, Term


class Half(Term):
    """Every token weighs less."""

    share: float = Field(default=0.5, description="of its weight")

    def weigh(self, step):
        """Weigh."""
        return StepEffect(weights_NT=self.share * step.kept_NT)
'''
BEFORE = """
import sys
from data_schemas.settings import PipelineSettings
from tasks.settings import check

settings = PipelineSettings.model_validate({"rl_one": %s})
check.require_names(settings)
assert "torch" not in sys.modules

from tasks.settings.listing import rows_of
from tasks.settings.fit import require_fit, settle

require_fit(settings, trains=True)
settings = settle(settings)
rows = {row.name: row.value for row in rows_of(settings)}
"""
LOSS_USE = """
from tasks.algorithms.losses import table
print(table.find(settings.rl_one.loss).clip_range, rows["rl_one.loss.clip_low"])
"""
TERM_USE = """
import torch
from tasks.algorithms.losses.surrogate import unclipped
from tasks.algorithms.losses.table import whole_step
from tasks.algorithms.terms.fold import fold_step
from tasks.algorithms.terms.protocol import StepSignal
from tasks.algorithms.terms.table import find_terms

one = torch.ones(1, 1)
signal = StepSignal(
    one.bool(), one, one, one, one, None, whole_step(one.bool()), one, unclipped(one, one), one, one
)
weights_NT = fold_step(find_terms(settings.rl_one.terms), signal).weights_NT
print(weights_NT.tolist(), rows["rl_one.terms[0].share"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "table", "text", "changes", "use", "expected"),
    [
        pytest.param(
            *("losses", "LOSSES", LOSS, '{"loss": {"kind": "added", "clip_high": 0.4}}', LOSS_USE),
            "(0.3, 0.4) 0.3",
            id="loss",
        ),
        pytest.param(
            *("terms", "TERMS", TERM, '{"terms": [{"kind": "added", "share": 0.25}]}', TERM_USE),
            "[[0.25]] 0.25",
            id="term",
        ),
    ],
)
def test_a_built_in_choice_is_a_file_and_a_line(
    tmp_path, folder, table, text, changes, use, expected
):
    for package in ("tasks", "data_schemas", "workflows"):
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "lab")
        )
    algorithms = tmp_path / "tasks/algorithms"
    (algorithms / folder / "added.py").write_text(text)
    name = text.partition("class ")[2].partition("(")[0]
    names = (algorithms / "names.py").read_text()
    line = f'{table} = {{\n    "added": "tasks.algorithms.{folder}.added:{name}",'
    (algorithms / "names.py").write_text(names.replace(f"{table} = {{", line))

    done = subprocess.run(
        [sys.executable, "-c", BEFORE % changes + use],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stderr[-2000:]
    assert expected == done.stdout.splitlines()[-1]
