"""The rows of the benchmark: how many repeat others is known."""

import json
from pathlib import Path

from tests.bench.curation.rows import make_rows


def test_a_fifth_of_the_rows_repeats_earlier_ones_exactly_or_but_for_a_word(tmp_path: Path):
    (tmp_path / "gsm8k").mkdir()
    rows = [
        {"question": f"Shop {number} sells {number} bags. How many is that?", "answer": f"{number}"}
        for number in range(400)
    ]
    (tmp_path / "gsm8k" / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))

    rows_made = list(make_rows(tmp_path, 4000, seed=0))
    made = [row["question"] for row in rows_made]

    assert sorted(row["id"] for row in rows_made) == [row["id"] for row in rows_made]
    assert made == [row["question"] for row in make_rows(tmp_path, 4000, seed=0)]
    near = [asked.rpartition(" ")[0] for asked in made if not asked.endswith("?")]
    assert 0.07 < len(near) / len(made) < 0.13
    assert 0.07 < 1 - len(set(made) | set(near)) / len(made) < 0.25
