#!/usr/bin/env bash
# Expected: TER with asian_support=True counts Chinese by characters, and its signature says how
# the score came about. Seen: the option acts within normalisation only, which is off unless asked
# for. Without it a Chinese sentence stays one word: a translation with one character too many
# scores 100, as bad as one that has nothing in common with it, and the signature says asian:yes
# all the same. With normalized=True the score is 16.7. Version: sacrebleu 2.6.0. Matters: TER of
# Chinese and Japanese is a share of sentences that are not equal, under a signature that papers
# print as proof of the opposite.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check sacrebleu==2.6.0
cat > show.py <<'PYTHON'
from sacrebleu.metrics import TER


def ter(text, **options):
    metric = TER(**options)
    score = metric.corpus_score([text], [["商品已经发货"]]).score
    return round(score, 1), str(metric.get_signature())


near, signature = ter("商品已经发货了", asian_support=True)
far, _ = ter("今天天气很好", asian_support=True)
normal, _ = ter("商品已经发货了", asian_support=True, normalized=True)
print("one character too many:", near, "nothing in common:", far, "under", signature)
print("one character too many, normalized as well:", normal)
assert near == far == ter("商品已经发货了")[0] == 100
assert "asian:yes" in signature
assert normal == 16.7
PYTHON
HOME=$folder venv/bin/python show.py
