#!/usr/bin/env bash
# Expected: the scorer exact() of Inspect says that the whole answer equals the target, but for case
# and space. Seen: answers are made bare of punctuation word by word, with an eye on decimal points
# only: "-5" is correct for 5, and 5 for "-5", "10%" for 10; f1() says 1 of them. The point counts:
# "1.5" is not "15". match(numeric=True), of the same library, tells -5 and 5 apart. Version:
# inspect-ai 0.3.285. Matters: a benchmark of arithmetic that is scored by exact() pays answers with
# the wrong sign.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check inspect-ai==0.3.285
cat > show.py <<'PYTHON'
import asyncio

from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Target, exact, f1, match
from inspect_ai.solver import TaskState


def score(scorer, answer, target):
    output = ModelOutput.from_content("model", answer)
    state = TaskState(
        model="mockllm/model", sample_id=1, epoch=1, input="?", messages=[], output=output
    )
    return asyncio.run(scorer(state, Target(target))).value


for answer, target, seen in (
    ("-5", "5", ("C", 1.0, "I")),
    ("5", "-5", ("C", 1.0, "I")),
    ("10%", "10", ("C", 1.0, "I")),
    ("1.5", "15", ("I", 0.0, "I")),
):
    values = tuple(score(one, answer, target) for one in (exact(), f1(), match(numeric=True)))
    print(f"{answer:4} for {target:3} exact, f1, match: {values}")
    assert values == seen, (answer, target)
PYTHON
HOME=$folder venv/bin/python show.py
