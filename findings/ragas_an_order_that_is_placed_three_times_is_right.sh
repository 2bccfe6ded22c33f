#!/usr/bin/env bash
# Expected: the F1 of tool calls falls when an agent makes a call twice that is wanted once, or wants a
# number and gets true. Seen: calls are compared as a set: an order that is placed three times scores
# 1.0, and an argument of true is one of 1. ToolCallAccuracy of the same library gives 0 to the first.
# Version: ragas 0.4.3. Matters: an agent that repeats what cannot be undone has a perfect score.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check ragas==0.4.3 "langchain-community<0.4"
cat > show.py <<'PYTHON'
import asyncio

from ragas.dataset_schema import MultiTurnSample
from ragas.messages import AIMessage, HumanMessage, ToolCall
from ragas.metrics import ToolCallAccuracy, ToolCallF1


def score(metric, made, wanted):
    def calls(amounts):
        return [ToolCall(name="order", args={"amount": amount}) for amount in amounts]

    sample = MultiTurnSample(
        user_input=[HumanMessage(content="One, please."), AIMessage(content="", tool_calls=calls(made))],
        reference_tool_calls=calls(wanted),
    )
    return float(asyncio.run(metric.multi_turn_ascore(sample)))


for made, f1 in (([1], 1.0), ([2], 0.0), ([1, 2], 0.6667), ([1, 1, 1], 1.0), ([True], 1.0)):
    seen = score(ToolCallF1(), made, [1])
    print(f"wanted [1], made {made}: F1 {seen}, accuracy {score(ToolCallAccuracy(), made, [1])}")
    assert seen == f1
assert score(ToolCallAccuracy(), [1, 1, 1], [1]) == 0
PYTHON
HOME=$folder venv/bin/python show.py
