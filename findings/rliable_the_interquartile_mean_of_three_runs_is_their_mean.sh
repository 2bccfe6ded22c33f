#!/usr/bin/env bash
# Expected: the interquartile mean of three runs leans on the middle one: it is what rliable recommends
# instead of the mean, because one run cannot move it. Seen: a quarter of the runs is cut off at each end,
# as a whole number: none of three. The "IQM" of 0, 0 and 100 is 33.3, their mean, and its bootstrap
# interval is that of the mean; the median, being that of the means of the tasks, is the same again. Of
# seven runs one is cut off at each end, not one and three quarters. Runs times tasks are counted: three
# runs of four tasks are cut. Versions: rliable 1.2.0, scipy 1.17.1. Matters: studies of one benchmark
# with three seeds, which is what most can pay for, report means under the names of robust figures.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check rliable==1.2.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 arch==7.2.0
cat > show.py <<'PYTHON'
import numpy as np
from rliable.library import get_interval_estimates
from rliable.metrics import aggregate_iqm, aggregate_mean, aggregate_median


def column(*runs):
    return np.array(runs, dtype=float)[:, None]


for name, scores, seen in (
    ("three runs", column(0, 0, 100), 33.3),
    ("four runs", column(0, 0, 0, 100), 0.0),
    ("seven runs", column(0, 0, 0, 0, 0, 100, 100), 20.0),
    ("three runs of four tasks", np.repeat(column(0, 0, 100), 4, axis=1), 16.7),
):
    iqm = round(float(aggregate_iqm(scores)), 1)
    print(f"{name}: IQM {iqm}, mean {aggregate_mean(scores):.1f}, median {aggregate_median(scores):.1f}")
    assert iqm == seen
points, intervals = get_interval_estimates(
    {"run": column(0, 0, 100)},
    lambda runs: np.array([aggregate_iqm(runs), aggregate_mean(runs)]),
    reps=200,
    random_state=np.random.RandomState(0),
)
print("points", points["run"].round(1).tolist(), "intervals", intervals["run"].T.round(1).tolist())
assert points["run"][0] == points["run"][1]
assert intervals["run"][:, 0].tolist() == intervals["run"][:, 1].tolist()
PYTHON
HOME=$folder venv/bin/python -W ignore show.py
