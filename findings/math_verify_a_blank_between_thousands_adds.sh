#!/usr/bin/env bash
# Expected: 1 234 and 1\,234, thousands as SI, Brazil's statistics office and LaTeX write them,
# are 1234, or unreadable. Seen: math-verify 0.9.0 reads them as a mixed number: the sum 1 + 234 =
# 235. The answer 235 is accepted, 1234 refused. Versions: math-verify 0.9.0,
# latex2sympy2-extended 1.11.0. Matters: a gold with a thin space pays a wrong answer, and
# comparing it with itself, the usual check of golds, passes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check math-verify==0.9.0 latex2sympy2-extended==1.11.0
cat > show.py <<'PYTHON'
from math_verify import parse, verify

for gold in (r"$1 234$", r"$1\,234$"):
    read = parse(gold)[0]
    print(gold, "is read as", read)
    assert read == 235
    assert verify(parse(gold), parse("$235$"))
    assert not verify(parse(gold), parse("$1234$"))
PYTHON
HOME=$folder venv/bin/python show.py
