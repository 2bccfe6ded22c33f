#!/usr/bin/env bash
# Expected: cat, get and rm of fsspec act on the file that they are given, if a file of just this
# name exists, as exists and open do. Seen: brackets in a name make a pattern of it, and the name
# itself is not tried. Of train[1].json and train1.json, cat of the first one returns what is in the
# second, get copies the second, and rm removes the second. Version: fsspec 2026.6.0. Matters:
# shards are named after slices, as in train[:10%]; a stage that fetches or tidies such a file
# reads, or deletes, its neighbour.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check fsspec==2026.6.0
cat > show.py <<'PYTHON'
from pathlib import Path

import fsspec

store = fsspec.filesystem("memory")
store.pipe("/data/train[1].json", b"with brackets")
store.pipe("/data/train1.json", b"without")
name = "/data/train[1].json"
assert store.exists(name)
assert fsspec.open("memory:/" + name).open().read() == b"with brackets"

print("cat:", store.cat(name))
assert store.cat(name) == {"/data/train1.json": b"without"}
store.get(name, "fetched/")
fetched = {one.name: one.read_text() for one in Path("fetched").iterdir()}
print("get:", fetched)
assert fetched == {"train1.json": "without"}
store.rm(name)
print("after rm:", store.ls("/data", detail=False))
assert store.ls("/data", detail=False) == [name]
PYTHON
HOME=$folder venv/bin/python show.py
