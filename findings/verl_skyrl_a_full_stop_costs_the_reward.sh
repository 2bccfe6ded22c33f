#!/usr/bin/env bash
# Expected: the "flexible" way of reading an answer, the last number of the text, finds 18 in "The
# answer is 18." and 1800 in "1,800". Seen: the full stop and the comma are taken as parts of the number
# and never removed, so that a right answer that ends a sentence has reward 0, and without the full stop
# 1. "strict" removes commas, not the full stop: "#### 18." is wrong too, and "#### $18" is no answer,
# though a line removes dollar signs. Versions: verl 0.9.1 and skyrl-gym 0.4.0, which share the rule.
# Matters: GSM8K with these rewards teaches a model to end without punctuation, and accuracies before
# training are too low for those that write sentences.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps verl==0.9.1 skyrl-gym==0.4.0
cat > show.py <<'PYTHON'
from importlib.metadata import distribution
from importlib.util import module_from_spec, spec_from_file_location


def load(package, path):
    """The rule alone: the packages around it want a stack for GPUs."""
    spec = spec_from_file_location("rule", distribution(package).locate_file(path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.compute_score


rules = {
    "verl": load("verl", "verl/utils/reward_score/gsm8k.py"),
    "skyrl-gym": load("skyrl-gym", "skyrl_gym/envs/gsm8k/utils.py"),
}
for text, gold, method, reward in (
    ("The answer is 18", "18", "flexible", 1),
    ("The answer is 18.", "18", "flexible", 0),
    ("The answer is 1,800", "1800", "flexible", 0),
    ("#### 18", "18", "strict", 1),
    ("#### 18.", "18", "strict", 0),
    ("#### 1,800", "1800", "strict", 1),
    ("#### $18", "18", "strict", 0),
):
    seen = {name: rule(text, gold, method=method) for name, rule in rules.items()}
    print(f"{method:8} {text:20} gold {gold:4} {seen}")
    assert set(seen.values()) == {reward}
PYTHON
HOME=$folder venv/bin/python show.py
