#!/usr/bin/env bash
# Expected: of a judge's reply with "[1] Score: 1" and "[2] Score: 5" the second answer gets 5, wherever
# in the reply its line stands. Seen: QualityScorer and ComplexityScorer give the n-th line of the reply
# to the n-th answer, and do not read the number in brackets. A sentence in front moves all scores by one:
# the first answer has none, the second one that of the first; lines in another order are exchanged, and
# a blank line between them takes the last score away. Nothing is logged. Version: distilabel 1.5.3.
# Matters: preference pairs and filters made from chatty judges are turned round, row by row.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check distilabel==1.5.3 datasets==5.2.0 requests==2.34.2
cat > show.py <<'PYTHON'
from distilabel.models.llms.base import LLM
from distilabel.steps.tasks import ComplexityScorer, QualityScorer


class Judge(LLM):
    reply: str

    @property
    def model_name(self):
        return "judge"

    def generate(self, inputs, num_generations=1, **settings):
        tokens = {"input_tokens": [0], "output_tokens": [0]}
        return [{"generations": [self.reply], "statistics": tokens} for _ in inputs]


for task, answers in ((QualityScorer, "responses"), (ComplexityScorer, "instructions")):
    for name, reply, seen in (
        ("two lines", "[1] Score: 1\n[2] Score: 5", [1, 5]),
        ("a sentence in front", "Here are the scores:\n[1] Score: 1\n[2] Score: 5", [None, 1]),
        ("in another order", "[2] Score: 5\n[1] Score: 1", [5, 1]),
        ("a blank line between", "[1] Score: 1\n\n[2] Score: 5", [1, None]),
    ):
        scorer = task(llm=Judge(reply=reply))
        scorer.load()
        row = {"instruction": "Name a prime number.", answers: ["nine", "seven"]}
        scores = next(scorer.process([row]))[0]["scores"]
        print(f"{task.__name__}, {name}: {scores}")
        assert scores == seen
PYTHON
HOME=$folder HF_HUB_OFFLINE=1 venv/bin/python -W ignore show.py 2> log || { cat log; exit 1; }
