#!/usr/bin/env bash
# Expected: the mean of an array in bfloat16 is correct to bfloat16, since numpy's mean of float16
# adds up in float32 and its sum adds in pairs. Seen: for bfloat16 of ml_dtypes, the type that JAX
# and ONNX hand to numpy, both add one element after the other in bfloat16. At 256 adding 1 changes
# nothing: the sum of 4096 ones is 256, their mean 1/16. No warning; the dot product is right.
# Converted to float32 first all is well. Versions: ml_dtypes 0.6.0, numpy 2.4.6. Matters: norms of
# updates, means of log probabilities and comparisons of checkpoints in bfloat16 shrink towards
# zero with the size of the tensor.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check ml_dtypes==0.6.0 numpy==2.4.6
cat > show.py <<'PYTHON'
import ml_dtypes
import numpy as np

ones = np.ones(4096, dtype=ml_dtypes.bfloat16)
halves = np.ones(4096, dtype=np.float16)
print("4096 ones in float16: sum", float(halves.sum()), "mean", halves.mean())
print("in bfloat16: sum", ones.sum(), "mean", ones.mean(), "product with itself", ones @ ones)
assert halves.sum() == 4096 and halves.mean() == 1
assert ones.sum() == 256 and ones.mean() == 1 / 16
assert ones @ ones == 4096
assert ones.astype(np.float32).mean() == 1
PYTHON
HOME=$folder venv/bin/python show.py
