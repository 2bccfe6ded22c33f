#!/usr/bin/env bash
# Expected: another seed gives other tasks, so that seed 1 is for training and seed 2 held out; and
# the endless stream of a data set, which takes a new seed after each chunk of 500, gives new tasks
# all along. Seen: task number i of seed s is drawn from a generator with the seed s + i. Of 500 tasks
# with seed 2, 499 are those of seed 1, moved by one place, and a stream of 2,000 tasks has 503
# different ones. It is so for nearly all generators of the library and for its mixtures. Version:
# reasoning-gym 0.1.25. Matters: held-out scores measure memory, runs over three seeds share their
# data, and endless training repeats the first chunk; seeds have to lie further apart than the size.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check reasoning-gym==0.1.25
cat > show.py <<'PYTHON'
from itertools import islice

import reasoning_gym
from reasoning_gym.dataset import ReseedingDataset

SIZE = 500


def questions(name, seed):
    tasks = reasoning_gym.create_dataset(name, size=SIZE, seed=seed)
    return [tasks[number]["question"] for number in range(SIZE)]


for name in ("chain_sum", "leg_counting", "countdown"):
    first, second, far = (questions(name, seed) for seed in (1, 2, 1 + SIZE))
    assert second[:-1] == first[1:]
    print(f"{name}: of {SIZE} tasks {len(set(first) & set(second))} are in seeds 1 and 2,", end=" ")
    print(f"{len(set(first) & set(far))} in seeds 1 and {1 + SIZE}")
    assert len(set(first) & set(far)) < SIZE / 10
tasks = reasoning_gym.create_dataset("countdown", size=SIZE, seed=1)
stream = ReseedingDataset(tasks, chunk_size=SIZE)
texts = [entry["question"] for entry in islice(stream, 4 * SIZE)]
print(f"a stream of {len(texts)} tasks has {len(set(texts))} different ones")
assert len(set(texts)) == SIZE + 3
PYTHON
HOME=$folder venv/bin/python -W ignore show.py
