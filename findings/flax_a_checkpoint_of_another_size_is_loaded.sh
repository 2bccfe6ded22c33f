#!/usr/bin/env bash
# Expected: from_bytes, which is given the tree to restore into, refuses arrays of another shape or type, as
# it refuses a name that is missing. Seen: they replace those of the tree: a model of width 4 in bfloat16 becomes one of
# width 2 in float32, and a bias of 1 number, which broadcasts, is a bias for all without a word.
# Version: flax 0.12.8 with jax 0.10.2. Matters: a resume from the wrong run goes on.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check flax==0.12.8 jax==0.10.2 jaxlib==0.10.2
cat > show.py <<'PYTHON'
import flax.serialization as serialization
import jax.numpy as jnp

saved = serialization.to_bytes({"weight": jnp.ones((2, 2)), "bias": jnp.full((1,), 5.0)})
model = {"weight": jnp.zeros((4, 4), jnp.bfloat16), "bias": jnp.zeros((4,), jnp.bfloat16)}
restored = serialization.from_bytes(model, saved)
for name, array in model.items():
    print(f"{name}: wanted {array.shape} {array.dtype}, restored {restored[name].shape} {restored[name].dtype}")
assert restored["weight"].shape == (2, 2) and restored["weight"].dtype == "float32"
print("a layer of width 4 with that bias:", jnp.ones(4) + restored["bias"])
try:
    serialization.from_bytes({**model, "scale": jnp.ones(1)}, saved)
except ValueError:
    print("a name that the checkpoint lacks is refused")
else:
    raise AssertionError("a missing array was restored")
PYTHON
HOME=$folder JAX_PLATFORMS=cpu venv/bin/python show.py
