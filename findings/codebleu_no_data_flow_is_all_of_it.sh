#!/usr/bin/env bash
# Expected: CodeBLEU, a mean of four scores, falls if one of them falls, and a program that has nothing
# in common with the reference has zero. Seen: where the score of the data flow is 0, it is added as 1,
# while it is given back as 0 beside the sum. "pass" has 0.25 for any reference, and a first attempt, with
# a fifth of the data flow of the reference and a few of its words, has 0.06. Versions: codebleu 0.7.0,
# tree-sitter 0.22.3, tree-sitter-python 0.21.0. Matters: as a reward of code it pays for giving up, and
# as a figure it is a quarter too high for everything that shares no data flow.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check codebleu==0.7.0 tree-sitter==0.22.3 tree-sitter-python==0.21.0 'setuptools<80'
cat > show.py <<'PYTHON'
from codebleu import calc_codebleu

REFERENCE = """
def total(prices, rate):
    sum = 0
    for price in prices:
        sum = sum + price
    tax = sum * rate
    return sum + tax
"""
PARTS = ("ngram_match_score", "weighted_ngram_match_score", "syntax_match_score", "dataflow_match_score")
scores = {}
for name, program in {
    "the reference": REFERENCE,
    "an attempt": "def cost(items):\n    result = items[0]\n    result = result + 1\n    return result\n",
    "pass": "pass\n",
}.items():
    score = calc_codebleu([REFERENCE], [program], "python")
    scores[name] = score["codebleu"]
    parts = [round(score[part], 3) for part in PARTS]
    print(f"{name}: {score['codebleu']:.3f}, its parts {parts}, their mean {sum(parts) / 4:.3f}")
    if name == "pass":
        assert not any(parts) and score["codebleu"] == 0.25
    else:
        assert parts[3] > 0 and abs(score["codebleu"] - sum(parts) / 4) < 0.001
assert scores["an attempt"] < scores["pass"]
PYTHON
HOME=$folder venv/bin/python -W ignore show.py
