"""Rows of shards that mean the same: dropped for the first of them, with the reason and cosine."""

import json

import numpy as np
import pytest

from data_schemas.settings import CurationSettings, Source
from tasks.curation.ingest import ingest, raw_files
from tasks.curation.meaning.protocol import unit
from tasks.curation.overlap.nearness import FEWEST
from tasks.curation.shards import mapping, repeats
from tasks.curation.shards.mapping import Rules, map_shard, plan
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.repeats import drop_repeats
from tasks.curation.shards.steps import RefusalTables


class Topics:
    """The first word of a text decides its vector, up to a little noise of the others."""

    asked = 0

    def encode(self, texts):
        self.asked += len(texts)
        return unit(np.array([self.vector(text) for text in texts], np.float32))

    def vector(self, text):
        topic = np.random.default_rng([*text.split()[0].encode()]).normal(size=63)
        return topic + 0.05 * np.random.default_rng([*text.encode()]).normal(size=63)


def shards_of(base_model, folder, rows, per_shard, monkeypatch):
    monkeypatch.setattr(mapping, "ROWS", per_shard)
    (folder / "raw").mkdir(parents=True)
    (folder / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ingest([Source(adapter="gsm8k", path=str(folder / "set.jsonl"))], 0, folder / "raw")
    jobs = list(plan(folder / "raw", raw_files(folder / "raw"), folder / "shards"))
    for job in jobs:
        map_shard(job, Rules(CurationSettings(max_prompt_tokens=300), base_model, None))
    return Shards([job.out for job in jobs], folder)


def dropped(base_model, folder, rows, per_shard, monkeypatch, encoder=None):
    shards = shards_of(base_model, folder, rows, per_shard, monkeypatch)
    refused = RefusalTables(shards, folder)
    drop_repeats(shards, refused, encoder or Topics())
    found = [one for table in refused.tables() for one in table.to_pylist()]
    assert len(found) == (~shards.alive).sum()
    return [(one["kind"], one["key"], one["reason"], one["detail"]) for one in found]


def row(name, number, text="has {} bags. How many?"):
    return {"question": f"{name} {text.format(number)}", "answer": f"So.\n#### {number}"}


@pytest.mark.parametrize("per_shard", [7, 200])
def test_a_rewording_is_dropped_for_the_row_that_comes_first(
    base_model, tmp_path, monkeypatch, per_shard
):
    rows = [row(f"N{number}x", number) for number in range(FEWEST + 20)]
    rows.append(row("N0x", 0, "counts the bags and finds {} of them; tell me."))

    found = dropped(base_model, tmp_path, rows, per_shard, monkeypatch)

    assert [kind for kind, *_ in found] == ["problem", "demonstration"]
    for _, key, reason, detail in found:
        assert ("gsm8k/set-121", "same_meaning") == (key, reason)
        assert detail.startswith("of gsm8k/set-1, cosine 0.99")


def test_rows_of_which_none_has_the_numbers_of_another_are_not_encoded(
    base_model, tmp_path, monkeypatch
):
    rows = [row("Ann", number) for number in range(FEWEST + 20)]
    encoder = Topics()

    assert [] == dropped(base_model, tmp_path, rows, 50, monkeypatch, encoder)
    assert not encoder.asked


def test_few_rows_say_nothing_and_stay(base_model, tmp_path, monkeypatch, caplog):
    rows = [row("Ann", 3), row("Ann", 3, "finds {} bags.")]

    assert [] == dropped(base_model, tmp_path, rows, 50, monkeypatch)
    assert "training rows are not compared" in caplog.text


def test_a_pool_of_some_rows_sets_the_threshold_of_many(base_model, tmp_path, monkeypatch):
    monkeypatch.setattr(repeats, "POOL", FEWEST)
    rows = [row(f"N{number}x", number) for number in range(FEWEST + 100)]
    rows.append(row("N150x", 150, "counts the bags and finds {} of them; tell me."))
    encoder = Topics()

    found = dropped(base_model, tmp_path, rows, 50, monkeypatch, encoder)

    assert 2 == len(found)
    assert encoder.asked <= 2 * (FEWEST + 2)
