"""Rows of several shards, read at once."""

from dataclasses import replace

import numpy as np
import pytest

from data_schemas.rows import Outcome, Problem
from tasks.curation.items import refuse
from tasks.curation.overlap.fingerprints import Fingerprinter
from tasks.curation.shards.columns import to_table
from tasks.curation.shards.mapping import ITEMS, KEYS, write_arrow
from tasks.curation.shards.opened import Shards

STAGE, WHY = "dedup", (Outcome.DROPPED, "duplicate", "of another")


@pytest.fixture
def items(make_problem, make_demonstration):
    problems = [make_problem(f"p{n}", f"How much is {n} + {n}?") for n in range(4)]
    shown = [make_demonstration(f"d{n}", f"Is {n} it?", f"<think></think>{n}") for n in range(3)]
    return [replace(item, source=n) for n, item in enumerate([*problems, *shown])]


@pytest.fixture
def shards(items, tmp_path):
    """Return shards of three items, none, three and one."""
    folders = []
    for number, some in enumerate((items[:3], [], items[3:6], items[6:])):
        folders.append(tmp_path / str(number))
        folders[-1].mkdir()
        found = Fingerprinter().of(some)
        np.save(folders[-1] / KEYS, found.keys)
        write_arrow(folders[-1] / ITEMS, to_table(some, found.words))
    return Shards(folders, tmp_path)


@pytest.mark.parametrize("rows", [[6, 0, 4, 2, 4], [0, 1, 2, 3, 4, 5, 6], [5], []])
def test_rows_come_back_in_the_order_in_which_they_were_asked_for(shards, items, rows):
    asked = np.array(rows, np.int64)
    read = Fingerprinter().words

    assert [items[row] for row in rows] == shards.items(asked)
    assert [
        (items[row].source, items[row].record.id, items[row].record.source_row) for row in rows
    ] == shards.ranks(asked)
    assert [[*read(items[row].content), *read(items[row].response)] for row in rows] == [
        words.tolist() for words in shards.words(asked)
    ]
    assert [refuse(items[row], STAGE, *WHY) for row in rows] == shards.refuse(
        STAGE, [(row, *WHY) for row in rows]
    )


def test_what_an_item_is_can_be_asked_of_all_at_once(shards, items):
    assert [isinstance(item.record, Problem) for item in items] == shards.is_problem.tolist()
    assert [False] * 7 == shards.is_evaluation.tolist()
