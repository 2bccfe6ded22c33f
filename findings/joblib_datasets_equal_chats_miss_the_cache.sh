#!/usr/bin/env bash
# Expected: a cache by the value of the arguments is hit by equal arguments. Seen: joblib and the
# fingerprint of datasets digest the pickled form, in which an object that stands in two places is a
# reference the second time. Two chats that share one system message, and the same two chats read
# back from JSON, are equal and have two digests: the cached function runs again, and map gets another
# fingerprint. Text and numbers do no harm, dicts, lists and tuples do. dask, which digests values,
# is not misled. Versions: joblib 1.6.0, datasets 5.2.0, dask 2026.8.0. Matters: prompts and settings are
# built in one process and read from a file in the next: the cache of an expensive call is empty
# there, though nothing has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check joblib==1.6.0 datasets==5.2.0 dask==2026.8.0
cat > show.py <<'PYTHON'
import json

import datasets
import joblib
from dask.base import tokenize

system = {"role": "system", "content": "Answer briefly."}
built = [[system, {"role": "user", "content": text}] for text in ("one", "two")]
read = json.loads(json.dumps(built))
assert built == read
calls = []


def answer(chats):
    calls.append(chats)
    return len(chats)


cached = joblib.Memory("cache", verbose=0).cache(answer)
for chats in (built, built, read, read):
    cached(chats)
print(f"joblib: {len(calls)} calls of a cached function for equal chats")
assert len(calls) == 2


def add(row, chats):
    return {"chats": len(chats)}


datasets.disable_progress_bars()
rows = datasets.Dataset.from_dict({"number": [1, 2]})
first, again, other = (rows.map(add, fn_kwargs={"chats": chats})._fingerprint for chats in (built, built, read))
print(f"datasets: map has the fingerprint {first}, again {again}, and {other} for the chats from JSON")
assert first == again != other
print("dask: the same" if tokenize(built) == tokenize(read) else "dask: another")
assert tokenize(built) == tokenize(read)
PYTHON
HOME=$folder HF_HOME=$folder venv/bin/python show.py
