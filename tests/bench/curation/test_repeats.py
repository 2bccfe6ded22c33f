"""Planted repeats among training problems, found by an encoder whose vectors are known."""

import json

import numpy as np
import pytest

from tasks.curation.meaning.protocol import unit
from tasks.curation.overlap.nearness import FEWEST
from tasks.errors import DataError
from tests.bench.curation.repeats import found, questions


class FirstLetters:
    """The letters at the beginning of a text decide its vector."""

    def encode(self, texts):
        seeds = [[*text.split()[0].encode()] for text in texts]
        rows = [np.random.default_rng(seed).normal(size=32) for seed in seeds]
        return unit(np.array(rows, np.float32))


def test_questions_are_read_with_their_answers(tmp_path):
    (tmp_path / "train.jsonl").write_text(json.dumps({"question": "1 + 1?", "answer": "#### 2"}))

    (row,) = questions(tmp_path / "train.jsonl", 9)

    assert ("1 + 1?", {"value": "2"}) == (row["prompt"], row["answer"])
    with pytest.raises(DataError, match="Set DATA"):
        questions(tmp_path / "none.jsonl", 9)


def test_what_is_dropped_is_counted_by_method_and_origin(tmp_path):
    path = tmp_path / "train.jsonl"
    rows = [
        {"question": f"N{n}x has {n} bags. How many?", "answer": f"#### {n}"}
        for n in range(FEWEST + 5)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    planted = ["N0x counts the bags and finds 0 of them; tell me."]

    counts = found(questions(path, len(rows)), planted, FirstLetters())

    assert {"same_meaning planted": 1} == counts
