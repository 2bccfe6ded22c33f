"""The sample shop: seeded, read by its adapter, with clerks whose mistakes are refused."""

from collections import Counter

import pytest

from data_schemas.rows import MERGED, Demonstration, Problem, QuarantinedItem, Role
from tasks.curation import sample_shop
from tasks.curation.adapters.table import read_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    sample_shop.generate(sample_shop.SHOP, 0, folder)
    return folder


def read(folder, name):
    return list(read_file("sample_shop", 0, folder / name))


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    sample_shop.generate(sample_shop.SHOP, 0, tmp_path)

    for name in (sample_shop.PROBLEMS, sample_shop.DEMONSTRATIONS):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


def test_every_problem_is_read(folder):
    found = [item.record for items in read(folder, sample_shop.PROBLEMS) for item in items]

    assert sample_shop.NUM_PROBLEMS == len(found)
    assert {"shop"} == {record.verifier for record in found if isinstance(record, Problem)}


def test_careless_clerks_are_refused_with_the_verdict_and_the_others_teach_each_of_their_turns(
    folder,
):
    rows = read(folder, sample_shop.DEMONSTRATIONS)
    wrong = [row for row in rows if isinstance(row, QuarantinedItem)]
    shown = [row for row in rows if not isinstance(row, QuarantinedItem)]

    assert 2 * sample_shop.DEMONSTRATIONS_PER_PARENT == len(rows)
    assert {"wrong_demonstration"} == {row.reason for row in wrong}
    assert 0.1 < len(wrong) / len(rows) < 0.25
    records = [item.record for items in shown for item in items]
    assert all(isinstance(record, Demonstration) for record in records)
    assert set(MERGED) == set(Counter(record.parent for record in records))
    assert {2, 3} == {len(items) for items in shown}
    first, second, *_ = shown[0]
    assert [Role.SYSTEM, Role.USER] == [turn.role for turn in first.record.messages]
    assert first.record.response == second.record.messages[2].content
    assert Role.TOOL is second.record.messages[3].role


def test_purchases_are_read_and_a_clerk_who_did_not_ask_is_refused_unless_by_luck(tmp_path):
    sample_shop.generate(sample_shop.WISHES, 0, tmp_path)
    problems = list(read_file("sample_wishes", 0, tmp_path / sample_shop.PROBLEMS))
    shown = list(read_file("sample_wishes", 0, tmp_path / sample_shop.DEMONSTRATIONS))
    wrong = [row for row in shown if isinstance(row, QuarantinedItem)]

    assert sample_shop.NUM_PROBLEMS == len(problems)
    assert {"shop"} == {item.record.verifier for items in problems for item in items}
    assert {"wrong_demonstration"} == {row.reason for row in wrong}
    assert 0.05 < len(wrong) / len(shown) < 0.2
