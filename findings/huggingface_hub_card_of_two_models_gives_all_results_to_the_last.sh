#!/usr/bin/env bash
# Expected: a model card that is read and written again says the same. Its model-index is a list,
# so it may report on several models. Seen: huggingface_hub's ModelCard reads the results of all of
# them into one flat list and keeps one name, that of the last model. What it writes is one model
# that has every result: the small model's 10 and the large one's 90 are two values of one metric
# of the large one. The source of the large one's result is dropped as well. No warning. Version:
# huggingface_hub 2.4.0. Matters: whoever adds a tag to the card of a family of models moves the
# results of its members; a table that is read from cards takes the first value.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check huggingface_hub==2.4.0
cat > show.py <<'PYTHON'
from huggingface_hub import ModelCard

HEADER = """---
license: mit
model-index:
- name: small
  results:
  - task: {type: text-generation}
    dataset: {type: gsm8k, name: GSM8K}
    metrics:
    - {type: accuracy, value: 10}
- name: large
  results:
  - task: {type: text-generation}
    dataset: {type: gsm8k, name: GSM8K}
    metrics:
    - {type: accuracy, value: 90}
    source: {name: leaderboard, url: "https://example.org"}
---
"""


def values(card):
    return {
        model["name"]: [
            metric["value"] for result in model["results"] for metric in result["metrics"]
        ]
        for model in card.data.to_dict()["model-index"]
    }


card = ModelCard(HEADER)
print("models of the card: {'small': [10], 'large': [90]}")
print("models after it was read:", values(card))
assert values(card) == values(ModelCard(str(card))) == {"large": [10, 90]}
assert "leaderboard" not in str(card)
PYTHON
HOME=$folder venv/bin/python show.py
