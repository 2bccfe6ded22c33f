#!/usr/bin/env bash
# Expected: for the gold "A" the answer "A" is right and an empty one is wrong, by every metric. Seen:
# both metrics of DSPy leave out English articles, and the letter A is one. By exact match an empty
# answer, "the" and "..." are option A; by F1 the right answer A has 0 (a line about a "rare edge case"
# is printed), as has every other answer. Options B to D are scored as one expects; "Hepatitis A" is
# "hepatitis". Version: dspy 3.4.1. Matters: a prompt that is optimised on multiple choice is paid by
# exact match for saying nothing and by F1 never for A; scores of two models differ by how often A is
# right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check dspy==3.4.1
cat > show.py <<'PYTHON'
from dspy.evaluate.metrics import EM, F1

for answer, gold, exact, overlap in [
    ("A", "A", True, 0),
    ("", "A", True, 0),
    ("the", "A", True, 0),
    ("...", "A", True, 0),
    ("B", "A", False, 0),
    ("B", "B", True, 1),
    ("", "B", False, 0),
    ("hepatitis", "Hepatitis A", True, 1),
]:
    seen = EM(answer, [gold]), F1(answer, [gold])
    print(f"answer {answer!r:12} gold {gold!r:14} EM {seen[0]!s:5} F1 {seen[1]}")
    assert seen == (exact, overlap)
PYTHON
HOME=$folder venv/bin/python show.py
