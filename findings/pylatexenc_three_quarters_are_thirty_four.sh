#!/usr/bin/env bash
# Expected: LaTeX that is turned into text keeps its value: \dfrac{3}{4} is 3/4, as \frac{3}{4} is.
# Seen: a macro that the converter does not know is left out and its arguments stay, and \dfrac,
# \tfrac, \cfrac and \binom are such: \dfrac{3}{4} is "34" and \binom{5}{2} is "52". What it knows it
# puts together without brackets: 2\frac{1}{2} is "21/2", \frac{1+\sqrt{5}}{2} is "1+√(5)/2" and
# \frac{1}{2\sqrt{3}} is "1/2√(3)". Nothing is said. A grader that reads this text mends \dfrac before,
# and still calls 1/(2√3) and √3/2 equal and refuses (1+√5)/2 for itself. Versions: pylatexenc 2.11,
# mathruler 0.1.0. Matters: abstracts and problems in plain text, and rewards of maths.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pylatexenc==2.11 mathruler==0.1.0 sympy==1.14.0 tqdm==4.70.1
cat > show.py <<'PYTHON'
from mathruler.grader import grade_answer
from pylatexenc.latex2text import LatexNodes2Text

for latex, seen in {
    r"\frac{3}{4}": "3/4",
    r"\dfrac{3}{4}": "34",
    r"\tfrac{3}{4}": "34",
    r"\cfrac{3}{4}": "34",
    r"\binom{5}{2}": "52",
    r"2\frac{1}{2}": "21/2",
    r"\frac{1+\sqrt{5}}{2}": "1+√(5)/2",
    r"\frac{1}{2\sqrt{3}}": "1/2√(3)",
}.items():
    text = LatexNodes2Text().latex_to_text(latex)
    print(f"{latex} is {text}")
    assert text == seen, latex
for gold, answer, verdict in (
    (r"\frac{1}{2\sqrt{3}}", r"\frac{\sqrt{3}}{2}", True),
    (r"\frac{1+\sqrt{5}}{2}", r"1+\frac{\sqrt{5}}{2}", True),
    (r"\frac{1+\sqrt{5}}{2}", r"(1+\sqrt{5})/2", False),
):
    print(f"the answer {answer} to the gold {gold} is {'right' if verdict else 'wrong'}")
    assert grade_answer(answer, gold) is verdict, answer
PYTHON
HOME=$folder venv/bin/python show.py
