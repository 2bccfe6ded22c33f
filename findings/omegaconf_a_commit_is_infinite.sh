#!/usr/bin/env bash
# Expected: a short commit hash in a YAML file of settings is text, as PyYAML has it. Seen:
# OmegaConf and Hydra's overrides read digits, an e and digits as a floating-point number, with no
# point in it: 71e4532 is infinity, 12e4567 too, so that two commits are equal, and a field that is
# declared str holds the word "inf". Of random hashes of seven digits one in fifty is hit. Versions:
# omegaconf 2.3.1, hydra-core 1.3.8. Matters: the revision of a base model or of a data set in the
# settings of a run names none, and a rule that it must not change is satisfied by another one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check omegaconf==2.3.1 hydra-core==1.3.8 pyyaml==6.0.3
cat > show.py <<'PYTHON'
import random
from dataclasses import dataclass
from math import inf, isinf

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf


@dataclass
class Run:
    commit: str = ""


of_file = OmegaConf.create("commit: 71e4532")
of_class = OmegaConf.merge(OmegaConf.structured(Run), of_file)
of_override = OverridesParser.create().parse_override("commit=71e4532").value()
print("PyYAML:", yaml.safe_load("commit: 71e4532"))
print("OmegaConf:", of_file, "in a field of type str:", of_class, "Hydra's override:", of_override)
assert yaml.safe_load("commit: 71e4532") == {"commit": "71e4532"}
assert of_file.commit == of_override == inf
assert of_class.commit == "inf"
assert of_file == OmegaConf.create("commit: 12e4567")

draw = random.Random(0)
hashes = ["".join(draw.choices("0123456789abcdef", k=7)) for _ in range(3000)]
floats = [one for one in hashes if isinstance(OmegaConf.create(f"x: {one}").x, float)]
infinite = sum(isinf(OmegaConf.create(f"x: {one}").x) for one in floats)
print(len(floats), "of", len(hashes), "random hashes are floats,", infinite, "of them infinite")
assert 30 <= len(floats) <= 90
PYTHON
HOME=$folder venv/bin/python show.py
