#!/usr/bin/env bash
# Expected: equal inputs of a cached task have one cache key. Seen: an input annotated `dict[str,
# int]` has one whatever the order of its keys; the same value of an input annotated `dict` has a
# key for each order, because it is packed in the order in which it was filled. Version: flytekit
# 1.16.31. Matters: settings read from YAML, merged, or sent through a server that sorts keys run
# a week of training again, though nothing differs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check flytekit==1.16.31
cat > show.py <<'PYTHON'
from flytekit import task

runs = []


@task(cache=True, cache_version="1")
def typed(settings: dict[str, int]) -> int:
    runs.append("typed")
    return len(settings)


@task(cache=True, cache_version="1")
def untyped(settings: dict) -> int:
    runs.append("untyped")
    return len(settings)


one, other = {"steps": 1, "seed": 2}, {"seed": 2, "steps": 1}
assert one == other
for task_ in (typed, untyped):
    task_(settings=one)
    task_(settings=other)
print("tasks that ran for two equal inputs:", runs)
assert runs == ["typed", "untyped", "untyped"]
PYTHON
HOME=$folder venv/bin/python show.py
