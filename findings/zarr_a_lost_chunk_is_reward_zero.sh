#!/usr/bin/env bash
# Expected: reading an array of which a file is gone fails. Seen: a chunk that is not there is read as the
# fill value, which is 0 unless somebody chose it, without a warning: of six rewards of 1 two are 0.
# Version: zarr 3.1.6. Matters: an upload that stopped half-way, or a retention rule that took a file, turns
# rewards, log-probabilities and weights into zeros.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check zarr==3.1.6
cat > show.py <<'PYTHON'
import warnings
from pathlib import Path

import zarr

warnings.simplefilter("error")
rewards = zarr.create_array("rewards.zarr", shape=(6,), chunks=(2,), dtype="float32")
rewards[:] = 1
Path("rewards.zarr/c/1").unlink()
seen = zarr.open_array("rewards.zarr", mode="r")[:].tolist()
print("six rewards of 1, one of three chunk files lost:", seen)
assert seen == [1, 1, 0, 0, 1, 1]
PYTHON
HOME=$folder venv/bin/python show.py
