"""What a pod imports before its stage begins."""

import sys

from tests.processes import run_process


def test_stages_that_hold_no_model_do_not_wait_for_torch():
    program = "import sys, tasks.stages.audit, tasks.stages.release; print('torch' in sys.modules)"
    done = run_process([sys.executable, "-c", program])
    assert "False" == done.stdout.splitlines()[-1]
