#!/usr/bin/env bash
# Expected: Vietnamese number words with a sign or a decimal comma are read as what they name, or
# refused. Seen: words that are no digits, tens or scales are left out, and what is left is read: "ba
# phẩy năm" (three comma five) is 35, "mười lăm phẩy hai" (fifteen comma two) 152, "âm năm" (minus five)
# 5, "ba phần tư" (three quarters) 34. Whole numbers are read well, down to the spoken "hai ngàn
# năm" for 2500. Version: vietnam-number 1.0.6. Matters: prices and measures in words and answers of
# word problems: every decimal is at least ten times too large, and nothing is refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check vietnam-number==1.0.6
cat > show.py <<'PYTHON'
from vietnam_number import w2n

for words, seen in {
    "hai mươi lăm": 25,
    "hai ngàn năm": 2500,
    "ba phẩy năm": 35,
    "mười lăm phẩy hai": 152,
    "âm năm": 5,
    "ba phần tư": 34,
}.items():
    print(f"{words}: {w2n(words)}")
    assert w2n(words) == seen, words
PYTHON
HOME=$folder venv/bin/python show.py
