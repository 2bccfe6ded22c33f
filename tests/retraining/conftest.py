"""Rows as people would drop them into an inbox."""

import json

import pytest


@pytest.fixture
def make_row():
    """One JSON line of a final-answer problem."""

    def make(question, value="7", **changes):
        row = {
            "domain": "maths",
            "language": "en",
            "messages": [{"role": "user", "content": question}],
            "verifier": "final_answer",
            "answer": {"value": value},
        }
        return json.dumps({**row, **changes}, ensure_ascii=False)

    return make
