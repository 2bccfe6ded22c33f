#!/usr/bin/env bash
# Expected: a set written by its condition, {x | 1 < x < 2}, equals the open interval (1, 2), or
# cannot be read. Seen: math-verify 0.9.0 reads it as the number 1: the bare answer 1 is accepted
# and (1, 2) refused, while 1 < x < 2 without braces equals the interval. Versions: math-verify
# 0.9.0, latex2sympy2-extended 1.11.0. Matters: solution sets of inequalities, a chapter of every
# algebra set, pay one of their bounds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check math-verify==0.9.0 latex2sympy2-extended==1.11.0
cat > show.py <<'PYTHON'
from math_verify import parse, verify

gold = parse(r"$\{x \mid 1<x<2\}$")
print("read as", gold[0])
assert gold[0] == 1
assert verify(gold, parse("$1$"))
assert not verify(gold, parse("$(1,2)$"))
assert verify(parse("$1<x<2$"), parse("$(1,2)$"))
PYTHON
HOME=$folder venv/bin/python show.py
