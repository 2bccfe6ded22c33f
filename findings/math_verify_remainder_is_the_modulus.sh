#!/usr/bin/env bash
# Expected: 7 \bmod 3 is 1, or cannot be read. Seen: math-verify 0.9.0 reads it as 3, the last
# number, and \lg 100 as 100: an operator that it does not know is dropped with what stands before
# it. Versions: math-verify 0.9.0, latex2sympy2-extended 1.11.0. Matters: number theory's
# "remainder" golds pay the modulus, which stands in the problem.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check math-verify==0.9.0 latex2sympy2-extended==1.11.0
cat > show.py <<'PYTHON'
from math_verify import parse, verify

for gold, read, right in ((r"$7 \bmod 3$", 3, "$1$"), (r"$\lg 100$", 100, "$2$")):
    print(gold, "is read as", parse(gold)[0])
    assert parse(gold)[0] == read
    assert not verify(parse(gold), parse(right))
    assert verify(parse(gold), parse(f"${read}$"))
PYTHON
HOME=$folder venv/bin/python show.py
