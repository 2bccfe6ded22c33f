#!/usr/bin/env bash
# Expected: 0.125 is an eighth in every country: no notation groups thousands behind a leading zero.
# Seen: price-parser takes three digits behind a point or comma for a group of thousands also there:
# "$0.125" is 125, "0,125 EUR" is 125, "$0.12" and "$0.1250" are right. Version: price-parser 0.5.1.
# Matters: prices by gram, sheet or kilowatt-hour in feeds, which become a thousand times dearer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check price-parser==0.5.1
cat > show.py <<'PYTHON'
from decimal import Decimal

from price_parser import Price

for text, seen in {
    "$0.12": "0.12",
    "$0.125": "125",
    "0,125 EUR": "125",
    "$0.1250": "0.1250",
    "USD 0.005 per sheet": "5",
}.items():
    amount = Price.fromstring(text).amount
    print(f"{text!r:24} {amount}")
    assert amount == Decimal(seen), (text, amount)
assert Price.fromstring("$0.125", decimal_separator=".").amount == Decimal("0.125")
PYTHON
HOME=$folder venv/bin/python show.py
