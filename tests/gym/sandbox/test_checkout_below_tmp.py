import shutil
import sys
from pathlib import Path

import pytest

from tests.processes import run_process

ROOT = Path(__file__).parents[3]
PROGRAM = """
from data_schemas.rl_settings import CodeReward
from tasks.gym.sandbox.runner import shared_sandbox
outcome = shared_sandbox().run("def f():\\n    return 2", ("assert f() == 2",), "")
print(outcome.end, outcome.passed)
"""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_checkout_below_tmp_is_seen_in_the_sandbox(tmp_path):
    """The sandbox has a /tmp of its own, which must not hide the program that runs in it."""
    for name in ("tasks", "data_schemas"):
        shutil.copytree(
            ROOT / name,
            tmp_path / name,
            ignore=shutil.ignore_patterns("*.safetensors", "__pycache__"),
        )

    done = run_process(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=False,
    )

    assert "done" in done.stdout, done.stderr[-2000:]
