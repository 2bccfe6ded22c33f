#!/usr/bin/env bash
# Expected: a gold with two solutions, "x = 2 \text{ or } 3", is met by both of them. Seen: the task
# hendrycks_math (MATH) takes "\text{ " for the beginning of a unit and cuts off everything behind it,
# of the gold and of the answer. The first solution alone is right, the second alone is wrong, and
# "2 or 7" is right, since 7 is never looked at; so is 5 for "5 \text{ if } x > 0". The gold compared
# with itself passes, so a check of the golds shows nothing. Version: lm_eval 0.4.13. Matters: half an
# answer has the full point of a benchmark, and the full reward where this comparison is taken over.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check lm_eval==0.4.13 datasets==5.2.0
cat > show.py <<'PYTHON'
from lm_eval.tasks.hendrycks_math.utils import process_results

for gold, answer, seen in [
    (r"x = 2 \text{ or } 3", r"x = 2 \text{ or } 3", 1),
    (r"x = 2 \text{ or } 3", r"2", 1),
    (r"x = 2 \text{ or } 3", r"3", 0),
    (r"x = 2 \text{ or } 3", r"2 \text{ or } 7", 1),
    (r"(1, 2) \text{ and } (3, 4)", r"(1, 2)", 1),
    (r"5 \text{ if } x > 0", r"5", 1),
]:
    score = process_results({"solution": rf"So \boxed{{{gold}}}."}, [f"${answer}$"])
    print(f"{gold:30} {answer:20} {score}")
    assert score == {"exact_match": seen}
PYTHON
HOME=$folder HF_HUB_OFFLINE=1 venv/bin/python show.py
