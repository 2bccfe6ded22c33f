#!/usr/bin/env bash
# Expected: ROUGE of a text with itself is 1. Seen: rouge-score's tokenizer keeps a to z and 0 to
# 9 only. Equal Thai or Chinese sentences have no token and score 0; two Thai sentences that share
# nothing but a number score 1; "đen" (black) and "đèn" (lamp) differ from one another in one
# letter of a word that is cut into pieces. No warning. Version: rouge-score 0.1.2. Matters:
# summaries in Thai and Chinese are all equally bad, or equally good if both name one price.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check rouge-score==0.1.2
cat > show.py <<'PYTHON'
from rouge_score.rouge_scorer import RougeScorer

score = RougeScorer(["rougeL"]).score
same_thai = score("สินค้าส่งแล้ว", "สินค้าส่งแล้ว")["rougeL"].fmeasure
same_chinese = score("商品已发货", "商品已发货")["rougeL"].fmeasure
other_thai = score("ราคา 100 บาท", "ไม่ใช่ 100 ดอลลาร์")["rougeL"].fmeasure
print("a Thai text with itself:", same_thai, "a Chinese one:", same_chinese)
print("'price 100 baht' and 'not 100 dollars' in Thai:", other_thai)
assert same_thai == same_chinese == 0
assert other_thai == 1
PYTHON
HOME=$folder venv/bin/python show.py
