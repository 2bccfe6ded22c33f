"""How many functions of this project a reader passes through from the task `rl` to a loss."""

import sys
import traceback
from pathlib import Path

import pytest

from data_schemas.rl_settings import LossSettings
from tasks.plugins import pin

ROOT = Path(__file__).parents[3]
BROKEN = """
from tasks.algorithms.losses.grpo import GRPO


class Broken(GRPO):
    def objective(self, *_):
        raise ArithmeticError("here")
"""


FRAMES = """
retries.py: run
rl.py: rl
runner.py: run
rl.py: _train
phase.py: train
step.py: one_step
step.py: update
trainer.py: update
part_workers.py: each
trainer.py: learn
recording_loss.py: __call__
objective.py: __call__
broken_loss.py: objective
"""
"""Which errors Flyte retries, the task, what all stages share, the stage, its loop, a step,
its mini-batches, an optimizer step, who computes its parts, one part, its call for a replay, the
terms, the formula."""


def test_a_traceback_from_the_task_rl_to_the_formula_of_its_loss_has_these_thirteen_frames(
    phase, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_loss.py").write_text(BROKEN)
    loss = LossSettings(kind=pin("broken_loss.py:Broken"))

    with pytest.raises(ArithmeticError) as raised:
        phase(steps=1, loss=loss)

    frames = [
        f"{Path(frame.filename).name}: {frame.name}"
        for frame in traceback.extract_tb(raised.value.__traceback__)
        if Path(frame.filename).is_relative_to(ROOT / "tasks")
        or Path(frame.filename).parent == tmp_path
    ]
    sys.stdout.write("\n".join(frames))
    assert FRAMES.split("\n")[1:-1] == frames
