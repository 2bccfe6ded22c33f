#!/usr/bin/env bash
# Expected: a grader of maths answers calls the cube root of 8 and the square root of 8 different,
# and the first one 2. Seen: mathruler hands LaTeX to pylatexenc, which writes text for people: it
# drops the index of a root and sets the arguments of a binomial side by side. \sqrt[3]{8} equals
# \sqrt{8} and not 2, \sqrt[4]{x} equals \sqrt{x}, \binom{5}{2} equals 52 and not 10. Versions:
# mathruler 0.1.0, pylatexenc 2.11, sympy 1.14.0. Matters: as a reward of problems with roots and
# counts it refuses what is right and pays what is wrong; golds compared with themselves pass.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check mathruler==0.1.0 pylatexenc==2.11 sympy==1.14.0 tqdm==4.70.1
cat > show.py <<'PYTHON'
from mathruler.grader import grade_answer

for answer, gold, seen in (
    (r"\sqrt[3]{8}", r"\sqrt{8}", True),
    (r"2", r"\sqrt[3]{8}", False),
    (r"\sqrt[4]{x}", r"\sqrt{x}", True),
    (r"52", r"\binom{5}{2}", True),
    (r"10", r"\binom{5}{2}", False),
    (r"\sqrt{8}", r"\sqrt{8}", True),
    (r"3", r"\sqrt{8}", False),
):
    verdict = grade_answer(answer, gold)
    print(f"{answer:12} for {gold:14} {verdict}")
    assert verdict is seen, (answer, gold)
PYTHON
HOME=$folder venv/bin/python show.py
