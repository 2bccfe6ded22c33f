#!/usr/bin/env bash
# Expected: a call with "12.5 mg" is not the call with "1.25 mg" that was wanted, as a call with 12.5 as
# a number is not. Seen: before texts are compared, blanks, commas, points, slashes, dashes, underscores,
# stars and carets are removed (so that "April 1,2024" is "April 1, 2024"), also those between digits:
# "12.5 mg" is "1.25 mg", "31/2" is "3/12", "2026-1-12" is "2026-11-2", and "-5" is "5". Numbers are
# compared as they are. Version: bfcl-eval 2026.3.23. Matters: the checker of this leaderboard is taken as
# the reward of tool calls: arguments that are texts with digits are paid with their points anywhere.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps bfcl-eval==2026.3.23
cat > show.py <<'PYTHON'
import sys
from types import ModuleType, SimpleNamespace

# The checker alone: the table of models, of which it asks how their names are written, loads all clients.
models = ModuleType("bfcl_eval.constants.model_config")
models.MODEL_CONFIG_MAPPING = {"model": SimpleNamespace(underscore_to_dot=False)}
sys.modules[models.__name__] = models

from bfcl_eval.constants.enums import Language
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker


def is_right(value, wanted, kind):
    properties = {"value": {"type": kind, "description": "what to take"}}
    parameters = {"type": "dict", "properties": properties, "required": ["value"]}
    function = [{"name": "take", "description": "takes it", "parameters": parameters}]
    call, answer = [{"take": {"value": value}}], [{"take": {"value": [wanted]}}]
    return ast_checker(function, call, answer, Language.PYTHON, "simple_python", "model")["valid"]


for value, wanted, kind, seen in (
    ("1.25 mg", "1.25 mg", "string", True),
    ("12.5 mg", "1.25 mg", "string", True),
    ("31/2", "3/12", "string", True),
    ("2026-1-12", "2026-11-2", "string", True),
    ("-5", "5", "string", True),
    ("12.6 mg", "1.25 mg", "string", False),
    (12.5, 1.25, "float", False),
    (-5, 5, "integer", False),
):
    right = is_right(value, wanted, kind)
    print(f"{value!r} for {wanted!r} ({kind}): {'right' if right else 'wrong'}")
    assert right == seen
PYTHON
HOME=$folder venv/bin/python show.py
