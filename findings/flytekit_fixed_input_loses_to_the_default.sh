#!/usr/bin/env bash
# Expected: a launch plan that fixes an input runs with that value wherever it is started. Seen:
# called from Python it does; `pyflyte run file.py PLAN` on one's own machine runs it with the
# default of the workflow's parameter instead, and says nothing (on a cluster the same command is
# refused, because it sends the default for a fixed input). An input under default_inputs keeps
# its value. Version: flytekit 1.16.31. Matters: a plan named "full" that is tried at home trains
# the toy preset and succeeds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check flytekit==1.16.31
cat > plans.py <<'PYTHON'
from flytekit import LaunchPlan, task, workflow


@task
def show(size: str) -> str:
    print("size", size)
    return size


@workflow
def train(size: str = "toy") -> str:
    return show(size=size)


full = LaunchPlan.create("full", train, fixed_inputs={"size": "full"})
PYTHON
cat > show.py <<'PYTHON'
import subprocess

import plans

done = subprocess.run(
    ["venv/bin/pyflyte", "run", "plans.py", "full"], capture_output=True, text=True, check=True
)
(shell,) = [line for line in done.stdout.splitlines() if line.startswith("size")]
print("called from Python:", plans.full())
print("pyflyte run:", shell)
assert plans.full() == "full"
assert shell == "size toy"
PYTHON
HOME=$folder venv/bin/python show.py
