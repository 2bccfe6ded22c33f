#!/usr/bin/env bash
# Expected: a library of units reads the short forms of shops, or calls them unknown, as pint does
# with KG, gm and tbs. Seen: pcs and pc are parsecs, gr is the grain of 0.065 g, ML the megalitre,
# "fl oz" a femtolitre times an ounce, and "5 lb 3 oz" a product, 15 pound-ounces. No warning.
# Version: pint 0.25.3. Matters: attributes of products and answers about quantities: "100 gr" is
# 6.5 g, and of two listings of 250 ML and 250 mL one is a billion times as large; a check of
# dimensions alone finds nothing in either.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pint==0.25.3
cat > show.py <<'PYTHON'
import pint

read = pint.UnitRegistry()
for text, unit, amount in (
    ("3 pcs", "km", 9.257e13),
    ("100 gr", "g", 6.48),
    ("250 ML", "l", 2.5e8),
    ("250 mL", "l", 0.25),
):
    value = read(text).to(unit).magnitude
    print(f"{text} = {value:.4g} {unit}")
    assert abs(value / amount - 1) < 1e-3, text
print("1 fl oz =", read("1 fl oz"), "and 5 lb 3 oz =", read("5 lb 3 oz"))
assert read("1 fl oz") == read("femtoliter") * read("ounce")
assert read("5 lb 3 oz") == 15 * read("pound") * read("ounce")
for text in ("5 KG", "5 gm", "2 tbs"):
    try:
        read(text)
    except pint.UndefinedUnitError:
        print(text, "is unknown")
    else:
        raise AssertionError(text)
PYTHON
HOME=$folder venv/bin/python show.py
