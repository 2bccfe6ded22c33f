#!/usr/bin/env bash
# Expected: ratings with a decimal comma, "4,5" and "3,8", as they are written in Indonesia and
# Vietnam, are read as text, or as numbers where that is asked for. Seen: the column is described as
# `geopoint`, and reading it gives places: longitude 4, latitude 5. It is so as long as what stands
# behind the comma is at most 90, the greatest latitude: prices such as 12,50 are places too, 12,99 is
# not, and one such price in eleven leaves the column places and that row invalid. With a decimal point
# all are numbers. Version: frictionless 5.21.0. Matters: schemas of data packages are made by
# `frictionless describe` and published with the data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check frictionless==5.21.0
cat > show.py <<'PYTHON'
from pathlib import Path

from frictionless import Resource, validate


def read(cells):
    lines = ["product,value", *(f'{key},"{cell}"' for key, cell in enumerate(cells))]
    Path("shop.csv").write_text("\n".join(lines) + "\n")
    with Resource(path="shop.csv") as resource:
        values = [row["value"] for row in resource.row_stream]
        kind = resource.schema.get_field("value").type
    return kind, values, validate("shop.csv").stats["errors"]


for cells, kind, errors in (
    (["4,5", "3,8"], "geopoint", 0),
    (["4.5", "3.8"], "number", 0),
    (["12,50", "8,75"], "geopoint", 0),
    (["12,99", "8,99"], "string", 0),
    (["12,50"] * 10 + ["12,99"], "geopoint", 1),
):
    seen = read(cells)
    print(cells[-2:], "of", len(cells), "->", seen[0], *map(str, seen[1][-2:]), "errors:", seen[2])
    assert (seen[0], seen[2]) == (kind, errors)
assert tuple(read(["4,5"])[1][0]) == (4, 5)
PYTHON
HOME=$folder venv/bin/python show.py
