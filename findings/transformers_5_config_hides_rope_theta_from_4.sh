#!/usr/bin/env bash
# Expected: a config.json that transformers 5 writes for a Llama is read by transformers 4 as the
# same model, or refused. Seen: version 5 moves rope_theta into `rope_parameters` and writes it
# nowhere else; version 4.57 does not know that key, says nothing, and takes its default of 10000.
# A base of 500000 (Llama 3) rotates with the wrong angles. Versions: transformers 5.23.0 writes,
# 4.57.6 reads. Matters: servers, converters and quantisers that stand on version 4 load the
# weights without an error, and the model is worse the longer the prompt.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check transformers==5.23.0
python3 -m venv older
older/bin/python -m pip install --quiet --disable-pip-version-check transformers==4.57.6
cat > show.py <<'PYTHON'
import json
import subprocess

from transformers import LlamaConfig

LlamaConfig(rope_theta=500000.0).save_pretrained("model")
written = {k: v for k, v in json.load(open("model/config.json")).items() if "rope" in k}
code = "from transformers import AutoConfig; print(AutoConfig.from_pretrained('model').rope_theta)"
read = subprocess.run(
    ["older/bin/python", "-c", code], capture_output=True, text=True, check=True
).stdout.split()[-1]
print("transformers 5.23.0 writes:", written)
print("transformers 4.57.6 reads rope_theta", read)
assert written == {"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}}
assert read == "10000.0"
PYTHON
HOME=$folder venv/bin/python show.py
