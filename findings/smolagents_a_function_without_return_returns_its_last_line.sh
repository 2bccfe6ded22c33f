#!/usr/bin/env bash
# Expected: a function that ends without `return` returns None, in the interpreter of an agent's Python
# as in Python. Seen: LocalPythonExecutor returns the value of the last statement that it evaluated. A
# function that ends in an assignment returns what it assigned, which is true where Python has None,
# so that `if not is_known(name)` takes the other branch; one that has only a docstring returns the
# docstring. There is no message, while other things that the interpreter lacks are refused. Version:
# smolagents 1.26.0. Matters: code actions of rollouts do something else here than in the sandbox
# where the same code is graded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check smolagents==1.26.0
cat > show.py <<'PYTHON'
from smolagents.local_python_executor import LocalPythonExecutor

REMEMBER = """
seen = {}

def is_known(name):
    if name in seen:
        return True
    seen[name] = 1

fresh = [name for name in ["shoe", "shirt", "shoe"] if not is_known(name)]
"""
DOCUMENTED = '''
def later():
    """Not written yet."""

fresh = later()
'''


def in_python(code):
    names = {}
    exec(code, names)
    return names["fresh"]


def in_smolagents(code):
    interpreter = LocalPythonExecutor(additional_authorized_imports=[])
    interpreter.send_tools({})
    return interpreter(code + "\nfresh").output


for name, code, right, wrong in (
    ("names seen for the first time", REMEMBER, ["shoe", "shirt"], []),
    ("a function of a docstring", DOCUMENTED, None, "Not written yet."),
):
    print(f"{name}: Python {in_python(code)!r}, smolagents {in_smolagents(code)!r}")
    assert in_python(code) == right
    assert in_smolagents(code) == wrong
PYTHON
HOME=$folder venv/bin/python show.py
