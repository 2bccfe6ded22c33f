#!/usr/bin/env bash
# Expected: sanitizing a solution takes the prose around the code away, and a function that the
# entry point calls is kept. Seen: of the functions at the top level only those with a `return` are
# kept. A helper that works in place (swap, mark, fill a memo) is deleted although it is called, and
# the right solution ends in a NameError: wrong. The same helper with a bare `return` at its end stays.
# Version: evalplus 0.3.1. Matters: pass@1 of HumanEval+ and MBPP+ is measured on sanitized code, and
# rewards take the function over; models that write helpers are measured lower than those that write
# one long function.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check tree-sitter==0.25.2 tree-sitter-python==0.25.0 datasets==5.2.0 wget==3.2 tempdir==0.7.1 appdirs==1.4.4 tqdm==4.67.1 termcolor==3.2.0
venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps evalplus==0.3.1
cat > show.py <<'PYTHON'
from evalplus.sanitize import sanitize

SOLUTION = """
def swap(items, left, right):
    items[left], items[right] = items[right], items[left]{end}

def reverse(items):
    for left in range(len(items) // 2):
        swap(items, left, len(items) - 1 - left)
    return items
"""


def run(code):
    names = {}
    exec(code, names)
    try:
        return names["reverse"]([1, 2, 3])
    except NameError as error:
        return str(error)


for name, end in (("helper without return", ""), ("with a bare return", "\n    return")):
    code = SOLUTION.format(end=end)
    kept = sanitize(code, entrypoint="reverse")
    print(f"{name}: as written {run(code)}, sanitized {run(kept)}")
    assert run(code) == [3, 2, 1]
    assert ("def swap" in kept) == bool(end)
    assert run(kept) == ([3, 2, 1] if end else "name 'swap' is not defined")
PYTHON
HOME=$folder HF_HUB_OFFLINE=1 venv/bin/python show.py
