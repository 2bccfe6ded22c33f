#!/usr/bin/env bash
# Expected: in a local run a workflow with a condition inside of the side of another condition
# runs one task of each condition, as the same workflow does alone and on a cluster. Seen: the
# inner condition runs the tasks of both its sides; the value that comes out is the right one, so
# only the side effects tell. Version: flytekit 1.16.31. Matters: a local rehearsal of "train if
# there is news, else skip" trains and records a skip, and takes the time of both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check flytekit==1.16.31
cat > show.py <<'PYTHON'
from flytekit import conditional, task, workflow

calls = []


@task
def note(name: str) -> str:
    calls.append(name)
    return name


@workflow
def inner(answer: bool) -> str:
    return (
        conditional("inner")
        .if_(answer.is_true())
        .then(note(name="yes"))
        .else_()
        .then(note(name="no"))
    )


@workflow
def outer(enter: bool, answer: bool) -> str:
    return (
        conditional("outer")
        .if_(enter.is_true())
        .then(inner(answer=answer))
        .else_()
        .then(note(name="left out"))
    )


alone = inner(answer=False), list(calls)
calls.clear()
nested = outer(enter=True, answer=False), list(calls)
print("alone: result and tasks that ran:", alone)
print("inside of another condition:", nested)
assert alone == ("no", ["no"])
assert nested == ("no", ["yes", "no"])
PYTHON
HOME=$folder venv/bin/python show.py
