#!/usr/bin/env bash
# Expected: the same tensors with the same metadata are written as the same bytes, so that a digest
# of the file names the weights (tensors are put in an order of the library's own, whatever the
# order of the dict). Seen: the metadata are written in the order of a hash table with a seed of
# its own, which differs from call to call. With six entries a file has up to 720 forms; with none
# or one it has one. Version: safetensors 0.8.0. Matters: caches, releases and lineage that know a
# checkpoint by the digest of its file take a second save of unchanged weights for new ones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6
cat > show.py <<'PYTHON'
from hashlib import sha256

import numpy as np
from safetensors.numpy import load, save


def digests(metadata):
    return {sha256(save({"weight": np.zeros(2)}, metadata=metadata)).hexdigest() for _ in range(50)}


six = {"format": "pt", "base": "qwen", "step": "100", "seed": "1", "stage": "rl", "data": "gsm8k"}
print("files of 50 saves with six entries:", len(digests(six)))
print("with one:", len(digests({"format": "pt"})), "with none:", len(digests(None)))
assert len(digests(six)) > 1
assert len(digests({"format": "pt"})) == len(digests(None)) == 1

one, two = (save({"a": np.zeros(2), "b": np.ones(2)}), save({"b": np.ones(2), "a": np.zeros(2)}))
assert one == two
assert sorted(load(one)) == ["a", "b"]
PYTHON
HOME=$folder venv/bin/python show.py
