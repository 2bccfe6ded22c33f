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


def test_a_traceback_from_the_task_rl_to_the_formula_of_its_loss_has_at_most_fourteen_frames(
    phase, tmp_path, monkeypatch
):
    """All frames of this project count: what marks errors for Flyte, the task, the runner, the
    loss."""
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
    assert ("rl.py: rl", "broken_loss.py: objective") == (frames[1], frames[-1])
    assert len(frames) <= 14, frames
