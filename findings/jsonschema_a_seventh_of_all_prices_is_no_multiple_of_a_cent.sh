#!/usr/bin/env bash
# Expected: {"multipleOf": 0.01} is how a schema says that a number has at most two decimals; every price
# in cents is valid under it, since JSON numbers are decimals. Seen: the validator divides binary
# floats. Of the prices from 0.01 to 99.99 it refuses 1,363 of 9,999: 0.07, 0.14, 0.28, 0.29 ...
# With the unit 1e-2 read as a Decimal it refuses none. Version: jsonschema 4.26.0. Matters:
# extracted attributes of products that are graded by a schema: a seventh of the right prices is
# refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check jsonschema==4.26.0
cat > show.py <<'PYTHON'
import json
from decimal import Decimal

import jsonschema

schema = {"type": "number", "multipleOf": 0.01}
floats = jsonschema.Draft202012Validator(schema)
prices = [f"{cents // 100}.{cents % 100:02}" for cents in range(1, 10_000)]
refused = [price for price in prices if not floats.is_valid(json.loads(price))]
print(f"refused as floats: {len(refused)} of {len(prices)}, the first {refused[:6]}")
assert len(refused) == 1363 and refused[0] == "0.07"

decimals = jsonschema.Draft202012Validator({"multipleOf": Decimal("0.01")})
exact = [p for p in prices if not decimals.is_valid(json.loads(p, parse_float=Decimal))]
print(f"refused as decimals: {len(exact)}")
assert not exact
PYTHON
HOME=$folder venv/bin/python show.py
