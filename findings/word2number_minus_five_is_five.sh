#!/usr/bin/env bash
# Expected: a number in words is read whole or refused. Seen: word2number leaves out the words that
# it does not know, if one that it knows is there: "minus five" is 5, "two and a half" is 2, "one
# third" is 1, "two dozen" is 2; and it adds up what is a year: "nineteen ninety nine" is 1719. A
# text without any number is refused. Version: word2number 1.1. Matters: graders that put words into
# figures before they compare pay -5 for 5 and refuse 2.5 against its own words.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check word2number==1.1
cat > show.py <<'PYTHON'
from word2number.w2n import word_to_num

for text, seen in {
    "minus five": 5,
    "two and a half": 2,
    "one third": 1,
    "two dozen": 2,
    "nineteen ninety nine": 1719,
    "two point five": 2.5,
}.items():
    print(text, "=", word_to_num(text))
    assert word_to_num(text) == seen, text
try:
    word_to_num("a dozen")
except ValueError:
    print("a dozen is refused")
else:
    raise AssertionError("a dozen")
PYTHON
HOME=$folder venv/bin/python show.py
