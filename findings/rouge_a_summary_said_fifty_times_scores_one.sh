#!/usr/bin/env bash
# Expected: a ROUGE precision falls if a summary says everything fifty times, as it counts the words
# that the reference does not have so often. Seen: the package rouge, which LongBench uses, compares
# sets of words: the reference repeated fifty times has ROUGE-1 = ROUGE-L = 1 in precision, recall
# and F, as the reference itself. ROUGE-2 loses the one new pair at the seam, and says 0.89.
# Version: rouge 1.0.1. Matters: as a reward or a metric it has nothing against a model that repeats
# itself until its token limit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check rouge==1.0.1
cat > show.py <<'PYTHON'
from rouge import Rouge

reference = "the parcel arrives on monday"
once = Rouge().get_scores(reference, reference)[0]
often = Rouge().get_scores(" ".join([reference] * 50), reference)[0]
for name in ("rouge-1", "rouge-2", "rouge-l"):
    print(name, {key: round(value, 2) for key, value in often[name].items()})
    assert round(once[name]["f"], 2) == 1
for name in ("rouge-1", "rouge-l"):
    assert once[name] == often[name], name
assert round(often["rouge-2"]["f"], 2) == 0.89
PYTHON
HOME=$folder venv/bin/python show.py
