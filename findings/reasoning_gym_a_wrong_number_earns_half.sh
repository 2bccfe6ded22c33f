#!/usr/bin/env bash
# Expected: a verifier of arithmetic gives 1 to the right number and 0, or a small constant, to
# another number. Seen: the default verifier pays any text in which the characters of the right answer occur,
# by the share of its length: for the answer 3 it pays 13, 30 and -3 a half each, for -61 it pays
# "-610" three quarters, and "not 3" a fifth. The task basic_arithmetic uses it. Version:
# reasoning-gym 0.1.25. Matters: rewards of RL: a policy that guesses digits is paid, and the longer
# the right number, the more for a wrong digit beside it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check reasoning-gym==0.1.25
cat > show.py <<'PYTHON'
import reasoning_gym

tasks = reasoning_gym.create_dataset("basic_arithmetic", size=3, seed=1)
entry = next(e for e in tasks if e["answer"] == "3")
print(entry["question"], entry["answer"])
for answer, seen in {"3": 1.0, "13": 0.5, "30": 0.5, "-3": 0.5, "not 3": 0.2, "4": 0.0}.items():
    reward = tasks.score_answer(answer, entry)
    print(f"{answer!r:8} earns {reward}")
    assert reward == seen, (answer, reward)
PYTHON
HOME=$folder venv/bin/python show.py
