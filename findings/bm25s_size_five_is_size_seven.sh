#!/usr/bin/env bash
# Expected: a query for an "iphone 7 case" ranks the iphone 7 above the iphone 5. Seen: the
# tokenizer of bm25s takes words of two characters and more, so that a single digit or letter is no
# word: both documents have the same tokens and the same score. "C vs R" is the word "vs", and "3 +
# 5", like all sums of single digits, is empty. "iphone 15" and "iphone 17" differ. Version: bm25s
# 0.3.16. Matters: sizes, models, options A to D and small numbers have no part in retrieval, nor in
# a search for benchmark questions in training data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check bm25s==0.3.16 numpy==2.4.6
cat > show.py <<'PYTHON'
import bm25s


def words(texts):
    return bm25s.tokenize(texts, return_ids=False, show_progress=False)


def scores(query, documents):
    index = bm25s.BM25()
    index.index(bm25s.tokenize(documents, show_progress=False), show_progress=False)
    return index.get_scores(words([query])[0]).tolist()


near, other = scores("iphone 7 case", ["iphone 7 case", "iphone 5 case", "red shoe"])[:2]
print("iphone 7 case:", near, "iphone 5 case:", other)
assert near == other > 0
near, other = scores("iphone 17 case", ["iphone 17 case", "iphone 15 case", "red shoe"])[:2]
print("iphone 17 case:", near, "iphone 15 case:", other)
assert near > other
print(words(["size 5", "size 7", "C vs R", "3 + 5"]))
assert words(["size 5", "size 7", "C vs R", "3 + 5"]) == [["size"], ["size"], ["vs"], []]
PYTHON
HOME=$folder venv/bin/python show.py
