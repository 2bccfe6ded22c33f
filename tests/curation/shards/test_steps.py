"""What an attempt after another one asks again."""

import json

import pytest

from data_schemas.settings import CurationSettings, Source
from tasks.curation.contamination import drop
from tasks.curation.harm.protocol import Rating
from tasks.curation.ingest import ingest, raw_files
from tasks.curation.shards import mapping
from tasks.curation.shards.mapping import Rules, map_shard, plan
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.steps import (
    RefusalTables,
    drop_reworded,
    drop_same_meaning,
    screen_harm,
)


class Guard:
    """Knows some numbers only."""

    def __init__(self, *unknown):
        self.unknown, self.asked = unknown, 0

    def rate(self, chats):
        self.asked += len(chats)
        return [self.rating(chat[0].content) for chat in chats]

    def rating(self, text):
        known = not any(number in text for number in self.unknown)
        return Rating("13" in text if known else None, "as asked")


@pytest.fixture
def mapped(base_model, tmp_path, monkeypatch):
    """Return the folders of three shards with four problems and their demonstrations each."""
    monkeypatch.setattr(mapping, "ROWS", 4)
    rows = [
        {"question": f"A shop has {number} bags. Count?", "answer": f"So.\n#### {number}"}
        for number in range(10, 22)
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "raw").mkdir()
    ingest([Source(adapter="gsm8k", path=str(tmp_path / "set.jsonl"))], 0, tmp_path / "raw")
    jobs = list(plan(tmp_path / "raw", raw_files(tmp_path / "raw"), tmp_path / "shards"))
    for job in jobs:
        map_shard(job, Rules(CurationSettings(max_prompt_tokens=300), base_model, None))
    return [job.out for job in jobs]


def screened(folders, work, guard):
    shards = Shards(folders, work)
    refused = RefusalTables(shards, work)
    screen_harm(shards, refused, guard)
    found = [one["reason"] for table in refused.tables() for one in table.to_pylist()]
    return shards.alive.tolist(), found


def test_only_shards_that_a_guard_could_not_rate_as_a_whole_are_rated_again(mapped, tmp_path):
    first, second, third = Guard("15"), Guard(), Guard()

    before = screened(mapped, tmp_path, first)
    after = screened(mapped, tmp_path, second)

    assert ["harmful", "harmful", "harm_not_rated", "harm_not_rated"] == before[1]
    assert ["harmful", "harmful"] == after[1]
    assert (20, 22) == (sum(before[0]), sum(after[0]))
    assert (24, 8) == (first.asked, second.asked)
    assert (after, 0) == (screened(mapped, tmp_path, third), third.asked)


class Alike:
    """Refuses what names a number, until it is told to fail."""

    def __init__(self, fails_at=99):
        self.left = fails_at

    def sieve(self, items):
        self.left -= 1
        if not self.left:
            raise RuntimeError("encoder failed")
        alike = [item for item in items if "13" in item.content]
        kept = [item for item in items if item not in alike]
        return kept, [drop(item, "held-out a") for item in alike]


def test_shards_that_were_compared_by_meaning_are_not_compared_again(mapped, tmp_path):
    def compared(neighbours):
        shards = Shards(mapped, tmp_path)
        drop_same_meaning(shards, RefusalTables(shards, tmp_path), neighbours)
        return shards.alive.tolist()

    with pytest.raises(RuntimeError, match="encoder failed"):
        compared(Alike(fails_at=3))
    second, third = Alike(), Alike()

    alive = compared(second)

    assert (22, 98) == (sum(alive), second.left)
    assert (alive, 99) == (compared(third), third.left)


def test_what_has_nearly_the_words_of_a_benchmark_s_question_is_dropped(
    mapped, tmp_path, make_problem
):
    exams = [make_problem(f"{n}", f"Room {n} of {7 * n} is blue.") for n in range(100, 200)]
    exams.append(make_problem("bags", "Once, a shop has 13 bags. Do count?"))
    shards = Shards(mapped, tmp_path)
    refused = RefusalTables(shards, tmp_path)

    drop_reworded(shards, refused, exams)

    found = [one for table in refused.tables() for one in table.to_pylist()]
    assert {"contaminated"} == {one["reason"] for one in found}
    assert {"gsm8k/set-4"} == {one["key"] for one in found}
    assert 22 == shards.alive.sum()
    assert "held-out test/bags: 'Once, a shop has 13 bags. Do count?'" in found[0]["detail"]
