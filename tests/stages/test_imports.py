"""What a pod imports before its stage begins."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("stage", ["audit", "release"])
def test_a_stage_that_holds_no_model_does_not_wait_for_torch(stage):
    program = f"import sys, tasks.stages.{stage}; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "False" == done.stdout.splitlines()[-1]
