#!/usr/bin/env bash
# Expected: safetensors.numpy.save_file keeps the values of an array whatever its memory layout,
# or refuses one that is not contiguous, as the torch side of the library does. Seen: the shape of
# the view is written with the bytes of the memory behind it. A transposed matrix, and every other
# column of one, come back with other elements, without an error. numpy.ascontiguousarray before
# saving helps. Version: safetensors 0.8.0, numpy 2.4.6. Matters: a converter that writes weight.T
# for another layout saves a model of the right shapes and of wrong weights.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6
cat > show.py <<'PYTHON'
import numpy as np
from safetensors.numpy import load_file, save_file

weight = np.arange(6, dtype=np.float32).reshape(2, 3)
save_file(
    {"transposed": weight.T, "copied": np.ascontiguousarray(weight.T), "sliced": weight[:, ::2]},
    "weights.safetensors",
)
read = load_file("weights.safetensors")
print("saved:", weight.T.tolist())
print("read back:", read["transposed"].tolist())
assert read["transposed"].shape == weight.T.shape
assert not np.array_equal(read["transposed"], weight.T)
assert np.array_equal(read["transposed"], weight.reshape(3, 2))
assert np.array_equal(read["copied"], weight.T)
assert not np.array_equal(read["sliced"], weight[:, ::2])
PYTHON
HOME=$folder venv/bin/python show.py
