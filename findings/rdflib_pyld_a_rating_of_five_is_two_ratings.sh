#!/usr/bin/env bash
# Expected: two libraries for JSON-LD read one product into one graph. Seen: a number that is written
# with a point and no fraction, as Python writes every float, is a double for rdflib, 5.0, and an
# integer for pyld, 5, as the specification has it. A graph has both where the two meet: a rating of
# 5.0 is two ratings and counts twice, one of 4.5 stays one; a digest or signature of the canonical
# graph differs. Versions: rdflib 7.6.0, pyld 3.3.0. Matters: prices and ratings of schema.org and
# figures of Croissant (mlcroissant reads with rdflib): sums and averages are wrong for whole numbers only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check rdflib==7.6.0 pyld==3.3.0
cat > show.py <<'PYTHON'
import json

import rdflib
from pyld import jsonld

SUM = "SELECT (SUM(?rating) AS ?sum) (COUNT(?rating) AS ?number) WHERE {?product schema:rating ?rating}"
for rating, number in ((4.5, 1), (5.0, 2)):
    product = {"@context": {"@vocab": "https://schema.org/"}, "@id": "urn:product", "rating": rating}
    first = rdflib.Graph().parse(data=json.dumps(product), format="json-ld")
    lines = jsonld.to_rdf(product, {"format": "application/n-quads"})
    second = rdflib.Graph().parse(data=lines, format="nt")
    values = [sorted(value.n3().split("#")[-1].rstrip(">") for value in graph.objects()) for graph in (first, second)]
    ((total, count),) = (first + second).query(SUM)
    print(f"{rating}: {values[0][0]} for rdflib, {values[1][0]} for pyld; together {count} with the sum {total}")
    assert int(count) == number and float(total) == rating * number
PYTHON
HOME=$folder venv/bin/python show.py
