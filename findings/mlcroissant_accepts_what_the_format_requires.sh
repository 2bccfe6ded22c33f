#!/usr/bin/env bash
# Expected: mlcroissant refuses a description without a property that the Croissant 1.0 format
# lists as required (description, licence, url, creator, date of publication). Seen: it opens one
# that has a name alone. Licence and date are "recommended" in a warning; of description, url and
# creator it says nothing. Version: mlcroissant 1.1.1. Matters: "validated with mlcroissant" does
# not mean that a data set says who made it and under which licence it may be used.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check mlcroissant==1.1.1
cat > show.py <<'PYTHON'
import json

import mlcroissant

context = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "sc": "https://schema.org/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
}
described = {
    "@context": context,
    "@type": "sc:Dataset",
    "name": "catalogue",
    "conformsTo": "http://mlcommons.org/croissant/1.0",
}
with open("croissant.json", "w") as file:
    json.dump(described, file)
issues = mlcroissant.Dataset(jsonld="croissant.json").metadata.ctx.issues
words = " ".join(issues.warnings)
print("errors:", sorted(issues.errors))
print("warnings:", sorted(issues.warnings))
assert not issues.errors
assert "license" in words and "datePublished" in words
assert not any(name in words for name in ("description", "org/url", "creator"))
PYTHON
HOME=$folder venv/bin/python show.py
