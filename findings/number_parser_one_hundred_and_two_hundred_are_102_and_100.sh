#!/usr/bin/env bash
# Expected: number words in a sentence become the numbers that they name: "between one hundred and
# two hundred baht" has the numbers 100 and 200. Seen: "and" goes on with the number before it, and
# the hundred that follows begins a new one: "between 102 100 baht". In the same way "one thousand and
# two thousand" are 1002 and 1000, and "two hundred and three hundred" 203 and 100; with "to" between
# them, or below a hundred, they are read as meant. A second is a 2: "the second one" is "the 2 1".
# Version: number-parser 0.3.2. Matters: ranges of prices in queries and descriptions, and answers to
# word problems that are brought into digits before they are compared.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check number-parser==0.3.2
cat > show.py <<'PYTHON'
from number_parser import parse

for text, seen in {
    "between one hundred and two hundred baht": "between 102 100 baht",
    "from one hundred to two hundred baht": "from 100 to 200 baht",
    "between one thousand and two thousand": "between 1002 1000",
    "between two hundred and three hundred": "between 203 100",
    "between twenty and thirty": "between 20 and 30",
    "one hundred and two": "102",
    "the second one": "the 2 1",
}.items():
    print(f"{text}: {parse(text, language='en')}")
    assert parse(text, language="en") == seen, text
PYTHON
HOME=$folder venv/bin/python show.py
