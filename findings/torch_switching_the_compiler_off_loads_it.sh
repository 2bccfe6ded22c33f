#!/usr/bin/env bash
# Expected: `@torch.compiler.disable` marks a function and costs nothing in a program that compiles
# nothing; `import torch` itself leaves its compiler out. Seen: the decorator imports it at the moment
# when the function is defined: torch._dynamo, parts of torch._inductor, and nearly 900 modules in all.
# A library that switches compilation off for one method makes every process that imports it load
# the compiler. Version: torch 2.13.0, on a CPU. Matters: transformers 5.23.0 marks a method of its
# cache for continuous batching so, and many short processes (rewards, data loading, tests) pay for
# such a line at each start.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
cat > show.py <<'PYTHON'
import subprocess
import sys

COUNT = """
import sys
import torch
before = set(sys.modules)
{mark}
def reward(answer):
    return 0.0
new = set(sys.modules) - before
print(len(new), *(sum(name.startswith(part) for name in new) for part in ("torch._dynamo", "torch._inductor")))
"""

counts = {}
for mark in ("", "@torch.no_grad()", "@torch.compiler.disable"):
    command = [sys.executable, "-c", COUNT.format(mark=mark)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    counts[mark] = [int(word) for word in out.split()[-3:]]
    print(f"{mark or 'no mark':24} new modules, of torch._dynamo, of torch._inductor:", *counts[mark])
assert counts[""] == counts["@torch.no_grad()"] == [0, 0, 0]
num_new, num_dynamo, num_inductor = counts["@torch.compiler.disable"]
assert num_new > 500 and num_dynamo > 50 and num_inductor > 0
PYTHON
HOME=$folder venv/bin/python show.py
