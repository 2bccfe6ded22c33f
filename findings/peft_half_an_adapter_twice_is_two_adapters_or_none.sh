#!/usr/bin/env bash
# Expected: half of an adapter and half of an equal one are that adapter, whatever weighted
# combination is asked for. Seen: linear, dare_linear and magnitude_prune add the two factors A and B
# apart and multiply after: with equal factors the result is the double. A copy with both signs turned,
# which is the same change of the weights to the bit, gives zero: nothing is left of two equal adapters.
# cat and svd are right. Versions: peft 0.21.2, torch 2.13.0, transformers 5.23.0. Matters: soups of
# checkpoints of one run come out too strong, mixes of two seeds depend on signs that mean nothing,
# and a weight of 1 for each is no sum; measure the merged change, not the settings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
install="venv/bin/python -m pip install --quiet --disable-pip-version-check"
$install torch==2.13.0 numpy==2.4.6 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
$install peft==0.21.2 transformers==5.23.0 accelerate==1.15.0
cat > show.py <<'PYTHON'
import torch
from peft import LoraConfig, get_peft_model

SETTINGS = LoraConfig(r=2, lora_alpha=4, target_modules=["0"], init_lora_weights=False)
torch.manual_seed(0)
model = get_peft_model(torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False)), SETTINGS, "first")
layer = model.base_model.model[0]
for name, sign in (("copy", 1), ("turned", -1)):
    model.add_adapter(name, SETTINGS)
    for factors in (layer.lora_A, layer.lora_B):
        factors[name].weight.data = sign * factors["first"].weight.data
    assert torch.equal(layer.get_delta_weight(name), layer.get_delta_weight("first"))
change = layer.get_delta_weight("first")
for how, seen in {
    "cat": (1, 1),
    "svd": (1, 1),
    "linear": (2, 0),
    "dare_linear": (2, 0),
    "magnitude_prune": (2, 0),
}.items():
    sizes = []
    for name in ("copy", "turned"):
        density = {} if how in ("cat", "svd", "linear") else {"density": 1.0}
        model.add_weighted_adapter(["first", name], [0.5, 0.5], how + name, combination_type=how, **density)
        merged = layer.get_delta_weight(how + name)
        sizes.append(round((merged * change).sum().item() / (change * change).sum().item(), 3))
    print(f"{how}: half and half of two equal adapters is {sizes[0]} of them, with turned signs {sizes[1]}")
    assert tuple(sizes) == seen, how
PYTHON
HOME=$folder HF_HUB_OFFLINE=1 venv/bin/python -W ignore show.py
