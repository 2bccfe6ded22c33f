#!/usr/bin/env bash
# Expected: the quadratic weights of Cohen's kappa grow with the distance of two ratings. Seen:
# scikit-learn numbers the labels that occur in sorted order and weighs the distance of these
# numbers. Two judges who differ by at most one point of ten have 0.97 with their ratings as numbers
# and all of the scale named, 0.78 if the points that nobody gave are left to it (4 and 9 are
# neighbours then), and -0.31, worse than chance, if the ratings are text, as a regular expression
# finds them: "10" is below "2". Versions: scikit-learn 1.9.1, scipy 1.17.1, numpy 2.4.6. Matters:
# agreement of a judge with people, and the figure by which one of two judges is chosen.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
cat > show.py <<'PYTHON'
from sklearn.metrics import cohen_kappa_score

first, second = [2, 10, 10, 3, 9, 1], [3, 9, 10, 2, 10, 2]
named = cohen_kappa_score(first, second, weights="quadratic", labels=list(range(1, 11)))
found = cohen_kappa_score(first, second, weights="quadratic")
text = cohen_kappa_score([*map(str, first)], [*map(str, second)], weights="quadratic")
print("all points named:", round(named, 2))
print("those that occur:", round(found, 2))
print("the same as text:", round(text, 2))
assert (round(named, 2), round(found, 2), round(text, 2)) == (0.97, 0.78, -0.31)
PYTHON
HOME=$folder venv/bin/python show.py
