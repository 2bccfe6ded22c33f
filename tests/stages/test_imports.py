"""What a pod imports before its stage begins."""

import subprocess
import sys


def test_stages_that_hold_no_model_do_not_wait_for_torch():
    program = "import sys, tasks.stages.audit, tasks.stages.release; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "False" == done.stdout.splitlines()[-1]
