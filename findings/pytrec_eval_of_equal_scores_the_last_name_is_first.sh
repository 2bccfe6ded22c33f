#!/usr/bin/env bash
# Expected: documents of equal score stand in the order in which they were given, or share their
# rank. Seen: trec_eval orders them by name, the greatest first, and holds scores as float32, so
# that 0.9 and 0.9 - 1e-9 are equal as well. If three of three documents have the same score, a
# reciprocal rank is 1 if the right one is called doc3 and a third if it is called doc1; doc9 comes
# before doc10. Versions: pytrec-eval-terrier 0.5.11, scipy 1.17.1, numpy 2.4.6. Matters: judges and
# rerankers that give whole points tie all the time; which system wins depends on how the documents
# are numbered.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pytrec-eval-terrier==0.5.11 scipy==1.17.1 numpy==2.4.6
cat > show.py <<'PYTHON'
from pytrec_eval import RelevanceEvaluator


def reciprocal_rank(right, scores):
    evaluator = RelevanceEvaluator({"query": {right: 1}}, {"recip_rank"})
    return round(evaluator.evaluate({"query": scores})["query"]["recip_rank"], 3)


tied = {"doc1": 4.0, "doc2": 4.0, "doc3": 4.0}
print("all tied:", {name: reciprocal_rank(name, tied) for name in tied})
assert [reciprocal_rank(name, tied) for name in tied] == [0.333, 0.5, 1]
numbered = {"doc10": 4.0, "doc9": 4.0}
assert reciprocal_rank("doc9", numbered) == 1
near = {"doc1": 0.9, "doc2": 0.9 - 1e-9}
print("doc1 is ahead by 1e-9:", reciprocal_rank("doc1", near))
assert reciprocal_rank("doc1", near) == 0.5
PYTHON
HOME=$folder venv/bin/python show.py
